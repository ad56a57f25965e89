"""The salt is left out of the walk and of the comparison."""

KILLED_BY = "salts never meet"


class MyPrefixIndex(MyPrefixIndex):
    def lookup(self, token_ids, max_pages, salt):
        return super().lookup(token_ids, max_pages, None)

    def insert(self, token_ids, parent_page_id, page_id, salt):
        return super().insert(token_ids, parent_page_id, page_id, None)
