"""The largest page id goes first, as if pages were always handed out in the order of a sequence."""

KILLED_BY = "the order does not hang on page ids"


def withdraw(failed, parent_of):
    lost = set(failed)
    while more := {page for page, parent in parent_of.items() if parent in lost} - lost:
        lost |= more
    return sorted(lost, reverse=True)
