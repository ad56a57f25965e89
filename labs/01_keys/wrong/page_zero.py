"""Page 0 counts as no parent, because 0 is false."""

KILLED_BY = "page 0 is a page"


class MyPrefixIndex(MyPrefixIndex):
    def insert(self, token_ids, parent_page_id, page_id, salt):
        return super().insert(token_ids, parent_page_id or None, page_id, salt)
