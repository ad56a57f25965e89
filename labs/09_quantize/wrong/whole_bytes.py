"""Every code takes a whole byte, whatever its bits."""

KILLED_BY = "bits, groups and scales count"


def bytes_per_token(dim, bits, group_size, scale_bytes):
    return dim + 2 * scale_bytes * dim / group_size
