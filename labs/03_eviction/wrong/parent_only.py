"""Only the parent is looked at, not the parent's parent."""

KILLED_BY = "the README's examples"


def stranded(cached, parent_of):
    return {page for page in cached if parent_of[page] is not None and parent_of[page] not in cached}
