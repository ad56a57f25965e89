"""The last page is used as a whole."""

KILLED_BY = "what was never written is not seen"
right = paged_attention


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    page_size = key_pages.shape[1]
    return right(queries, key_pages, value_pages, page_table, -(-num_tokens // page_size) * page_size)
