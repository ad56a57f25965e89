"""Slots are counted without the KV heads between them."""

KILLED_BY = "KV heads are shared"
right = inner_loop


def inner_loop():
    return right().replace("(slot * KV_HEADS + kv_head)", "(slot + kv_head)")
