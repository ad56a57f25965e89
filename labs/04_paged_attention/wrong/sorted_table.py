"""Values are gathered in the order of the page ids, keys in that of the table."""

KILLED_BY = "pages come in the order of the table"


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    used = list(page_table[: -(-num_tokens // key_pages.shape[1])])
    keys, values = gathered(key_pages, used, num_tokens), gathered(value_pages, sorted(used), num_tokens)
    piece = partial(queries, keys, values)
    return piece.weighted / piece.total[:, None]
