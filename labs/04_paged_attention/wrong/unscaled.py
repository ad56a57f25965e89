"""Scores are not divided by the square root of the head size."""

KILLED_BY = "scores are scaled"
right = paged_attention


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    return right(queries * math.sqrt(queries.shape[1]), key_pages, value_pages, page_table, num_tokens)
