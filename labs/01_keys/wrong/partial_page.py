"""A last page that is not full is looked up and found when its tokens are the beginning of a stored page."""

KILLED_BY = "the longest prefix is found"


class MyPrefixIndex(MyPrefixIndex):
    def lookup(self, token_ids, max_pages, salt):
        found = super().lookup(token_ids, max_pages, salt)
        rest = tuple(token_ids[len(found) * self.page_size :])
        parent = found[-1] if found else None
        if rest and len(rest) < self.page_size and len(found) < max_pages:
            for page_id, tokens in self.tokens_of_page.items():
                if tokens[: len(rest)] == rest and self.parent_of_page[page_id] == parent:
                    return [*found, page_id]
        return found
