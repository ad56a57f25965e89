"""The whole pool is attended to, and what must not be seen gets a weight of 0: 0 times NaN is NaN."""

KILLED_BY = "strangers are not seen"


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    num_pages, page_size = key_pages.shape[:2]
    used = list(page_table[: -(-num_tokens // page_size)])
    order = [*used, *(page for page in range(num_pages) if page not in used)]
    keys, values = (gathered(pages, order, num_pages * page_size) for pages in (key_pages, value_pages))
    repeats = queries.shape[0] // keys.shape[1]
    keys, values = mx.repeat(keys, repeats, axis=1), mx.repeat(values, repeats, axis=1)
    scores = (keys * queries[None]).sum(axis=-1) / math.sqrt(queries.shape[1])
    seen = mx.arange(len(scores))[:, None] < num_tokens
    weights = mx.softmax(mx.where(seen, scores, -math.inf), axis=0)
    return (weights[..., None] * values).sum(axis=0)
