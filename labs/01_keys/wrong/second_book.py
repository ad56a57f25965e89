"""insert remembers pages by their tokens in a book of its own, which remove() does not clear."""

KILLED_BY = "removed pages are gone"


class MyPrefixIndex(MyPrefixIndex):
    def insert(self, token_ids, parent_page_id, page_id, salt):
        book = self.__dict__.setdefault("book", {})
        content = (parent_page_id, tuple(token_ids), salt)
        if content in book:
            return book[content]
        stored = super().insert(token_ids, parent_page_id, page_id, salt)
        if stored is not None:
            book[content] = stored
        return stored
