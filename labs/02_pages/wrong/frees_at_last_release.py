"""The last release frees the page, so nothing can be kept as cached."""

KILLED_BY = "the README's example"


class MyPagePool(MyPagePool):
    def release(self, page_id):
        left = super().release(page_id)
        if left == 0:
            super().reclaim(page_id)
        return left
