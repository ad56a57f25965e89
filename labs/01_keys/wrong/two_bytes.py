"""Token ids are cut to two bytes, and a vocabulary has more than 65,536."""

KILLED_BY = "numbers do not run together"


def page_key(parent_key, token_ids):
    return hashlib.sha256(parent_key + b"".join((token & 0xFFFF).to_bytes(2, "little") for token in token_ids)).digest()
