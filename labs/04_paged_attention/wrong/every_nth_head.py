"""Query head h reads KV head h modulo the number of KV heads."""

KILLED_BY = "pages come in the order of the table"
right = paged_attention


def paged_attention(queries, key_pages, value_pages, page_table, num_tokens):
    heads, kv_heads = queries.shape[0], key_pages.shape[2]
    order = [head for kv in range(kv_heads) for head in range(kv, heads, kv_heads)]
    back = [order.index(head) for head in range(heads)]
    return right(queries[mx.array(order)], key_pages, value_pages, page_table, num_tokens)[mx.array(back)]
