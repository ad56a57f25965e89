"""The deepest page of all goes first, whoever used it and when."""

KILLED_BY = "the least recently used request goes first"


class MyEviction(MyEviction):
    def add(self, page_id, use):
        super().add(page_id, use)
        self.__dict__.setdefault("depths", {})[page_id] = use.depth

    def pop_victim(self):
        page_id = max(self.queue, key=lambda other: self.depths[other])
        del self.queue[page_id]
        return page_id
