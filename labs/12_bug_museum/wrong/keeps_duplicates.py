"""The repair changes nothing: both copies stay, each with its owner, and one of them can never be found."""

KILLED_BY = "as much is reused"


def fix_freed_duplicate(page_table, position, found, retain, release):
    pass
