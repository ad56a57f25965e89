"""insert writes without looking: of two pages with equal content the first is forgotten."""

KILLED_BY = "equal content is stored once"


class MyPrefixIndex(MyPrefixIndex):
    def insert(self, token_ids, parent_page_id, page_id, salt):
        root = root_key(self.identity, salt)
        key = self.make_key(root if parent_page_id is None else self.key_of_page[parent_page_id], token_ids)
        self.page_id_of_key[key] = page_id
        self.key_of_page[page_id] = key
        self.parent_of_page[page_id] = parent_page_id
        self.tokens_of_page[page_id] = tuple(token_ids)
        self.salt_of_page[page_id] = salt
        return page_id
