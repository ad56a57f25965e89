"""The newest request goes first: a stack of requests, each with its tail on top."""

KILLED_BY = "the least recently used request goes first"


class MyEviction(MyEviction):
    def __init__(self):
        super().__init__()
        self.requests = []

    def add(self, page_id, use):
        if not self.requests or use.depth >= self.requests[-1][-1][1]:
            self.requests.append([])
        self.requests[-1].append((page_id, use.depth))
        self.queue[page_id] = None

    def pop_victim(self):
        while True:
            while self.requests and not self.requests[-1]:
                self.requests.pop()
            page_id, _ = self.requests[-1].pop(0)
            if page_id in self.queue:
                del self.queue[page_id]
                return page_id
