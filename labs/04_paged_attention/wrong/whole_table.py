"""A full last page is taken for granted when the table is longer: all pages of the table are read."""

KILLED_BY = "a table may be longer than needed"
right = paged_attention


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    page_size = key_pages.shape[1]
    if len(page_table) * page_size - num_tokens >= page_size:
        num_tokens = len(page_table) * page_size
    return right(queries, key_pages, value_pages, page_table, num_tokens)
