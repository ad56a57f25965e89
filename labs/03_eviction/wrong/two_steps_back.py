"""The parent and its parent are looked at, and no page further back."""

KILLED_BY = "every page up to the head counts"


def stranded(cached, parent_of):
    def lacks(page, steps):
        parent = parent_of[page]
        return parent is not None and steps > 0 and (parent not in cached or lacks(parent, steps - 1))

    return {page for page in cached if lacks(page, 2)}
