"""A key that is found is taken for a proof; nothing stored is compared."""

KILLED_BY = "collisions cost no wrong answer"


class MyPrefixIndex(MyPrefixIndex):
    def holds(self, page_id, parent, tokens, salt):
        return True
