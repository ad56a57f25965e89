"""Every query head reads KV head 0."""

KILLED_BY = "KV heads are shared"
right = inner_loop


def inner_loop():
    return right().replace("slot * KV_HEADS + kv_head", "slot * KV_HEADS")
