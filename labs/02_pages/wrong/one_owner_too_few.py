"""Three owners count as two: the count stops at 2, as if a page were only ever shared by two."""

KILLED_BY = "any calls in any order"


class MyPagePool(MyPagePool):
    def retain(self, page_id):
        super().retain(page_id)
        self.counts[page_id] = min(self.counts[page_id], 2)
        return self.counts[page_id]
