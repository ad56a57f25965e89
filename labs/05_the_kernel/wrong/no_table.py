"""Pages are taken in the order of their ids, not of the table."""

KILLED_BY = "pages are found through the table"
right = inner_loop


def inner_loop():
    return right().replace("page_table[token / PAGE_SIZE] * PAGE_SIZE + token % PAGE_SIZE", "token")
