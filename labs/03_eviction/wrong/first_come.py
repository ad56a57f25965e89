"""First in, first out: a page that is used again keeps the place it first had."""

KILLED_BY = "a page that is used again counts as new"


class MyEviction(MyEviction):
    def __init__(self):
        super().__init__()
        self.arrivals = {}

    def add(self, page_id, use):
        self.arrivals.setdefault(page_id, len(self.arrivals))
        super().add(page_id, use)

    def pop_victim(self):
        page_id = min(self.queue, key=lambda other: self.arrivals[other])
        del self.queue[page_id]
        return page_id
