"""One scale and one bias for a token, however many groups there are."""

KILLED_BY = "bits, groups and scales count"


def bytes_per_token(dim, bits, group_size, scale_bytes):
    return dim * bits / 8 + 2 * scale_bytes
