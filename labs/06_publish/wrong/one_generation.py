"""The failed pages and their children are withdrawn, but not the children's children."""

KILLED_BY = "everything behind a failed page goes"


def withdraw(failed, parent_of):
    children = [page for page, parent in parent_of.items() if parent in failed and page not in failed]
    return [*sorted(children, reverse=True), *sorted(failed, reverse=True)]
