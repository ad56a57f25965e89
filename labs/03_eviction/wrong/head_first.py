"""The head of a request goes first, as in a queue to which the pages are added head first."""

KILLED_BY = "the README's example"


class MyEviction(MyEviction):
    def add(self, page_id, use):
        waiting = [other for other in self.queue if self.depths[other] > use.depth]
        self.depths[page_id] = use.depth
        self.queue[page_id] = None
        for other in waiting:
            self.queue.move_to_end(other)

    @property
    def depths(self):
        return self.__dict__.setdefault("depth_of_page", {})
