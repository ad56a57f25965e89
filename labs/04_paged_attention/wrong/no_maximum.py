"""exp is taken of the scores as they are."""

KILLED_BY = "large scores do not overflow"


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    keys, values = (gathered(pages, page_table, num_tokens) for pages in (key_pages, value_pages))
    repeats = queries.shape[0] // keys.shape[1]
    keys, values = mx.repeat(keys, repeats, axis=1), mx.repeat(values, repeats, axis=1)
    weights = mx.exp((keys * queries[None]).sum(axis=-1) / math.sqrt(queries.shape[1]))
    return (weights[..., None] * values).sum(axis=0) / weights.sum(axis=0)[:, None]
