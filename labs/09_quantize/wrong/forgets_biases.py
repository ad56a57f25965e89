"""The bias of each group is not counted."""

KILLED_BY = "the README's example"


def bytes_per_token(dim, bits, group_size, scale_bytes):
    return dim * bits / 8 + scale_bytes * dim / group_size
