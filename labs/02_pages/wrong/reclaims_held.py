"""A page that is still held can be reclaimed: it is freed under its owner."""

KILLED_BY = "only what nobody holds is reclaimed, and once"


class MyPagePool(MyPagePool):
    def reclaim(self, page_id):
        self.require(not self.is_free[page_id], f"page {page_id} is free already")
        self.counts[page_id] = 0
        self.is_free[page_id] = True
        self.free.append(page_id)
