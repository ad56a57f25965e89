"""release counts below zero without a word."""

KILLED_BY = "what nobody holds cannot be released"


class MyPagePool(MyPagePool):
    def release(self, page_id):
        self.counts[page_id] = max(0, self.counts[page_id] - 1)
        return self.counts[page_id]
