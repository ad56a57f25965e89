"""The key covers the page's own tokens only."""

KILLED_BY = "the README's examples"


def page_key(parent_key, token_ids):
    return hashlib.sha256(struct.pack(f"<{len(token_ids)}q", *token_ids)).digest()
