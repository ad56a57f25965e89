"""An empty pool helps itself to a page that nobody references, though others may still find it."""

KILLED_BY = "the pool can be empty"


class MyPagePool(MyPagePool):
    def allocate(self):
        if not self.free:
            for page_id, count in enumerate(self.counts):
                if count == 0:
                    self.reclaim(page_id)
                    break
        return super().allocate()
