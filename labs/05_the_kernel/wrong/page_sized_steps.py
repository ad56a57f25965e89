"""The offset in the page is forgotten: both tokens of a page are read from its first place."""

KILLED_BY = "all lanes count"
right = inner_loop


def inner_loop():
    return right().replace(" + token % PAGE_SIZE", "")
