"""The table is read one page further: an index outside the array at the last page."""

KILLED_BY = "all lanes count"
right = inner_loop


def inner_loop():
    return right().replace("page_table[token / PAGE_SIZE]", "page_table[token / PAGE_SIZE + (token > 3 ? 4 : 0)]")
