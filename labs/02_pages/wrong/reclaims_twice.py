"""A page can be reclaimed twice, is in the free list twice, and goes to two owners."""

KILLED_BY = "only what nobody holds is reclaimed, and once"


class MyPagePool(MyPagePool):
    def reclaim(self, page_id):
        self.require(self.counts[page_id] == 0, f"page {page_id} is held")
        self.is_free[page_id] = True
        self.free.append(page_id)
