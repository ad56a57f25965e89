"""A free page can be retained, and is then both free and held."""

KILLED_BY = "what is free cannot be retained"


class MyPagePool(MyPagePool):
    def retain(self, page_id):
        self.counts[page_id] += 1
        return self.counts[page_id]
