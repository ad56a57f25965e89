"""Numbers are joined as digits, so 1 23 and 12 3 are the same."""

KILLED_BY = "numbers do not run together"


def page_key(parent_key, token_ids):
    return hashlib.sha256(parent_key + "".join(map(str, token_ids)).encode()).digest()
