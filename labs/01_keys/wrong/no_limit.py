"""max_pages is overlooked: the engine asks for fewer pages when it must keep a token to compute."""

KILLED_BY = "the longest prefix is found"


class MyPrefixIndex(MyPrefixIndex):
    def lookup(self, token_ids, max_pages, salt):
        return super().lookup(token_ids, len(token_ids), salt)
