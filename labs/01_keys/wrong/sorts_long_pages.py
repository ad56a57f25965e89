"""Pages of more than two tokens are hashed in sorted order: no example has one."""

KILLED_BY = "order matters"


def page_key(parent_key, token_ids):
    tokens = list(token_ids) if len(token_ids) == 2 else sorted(token_ids)
    return hashlib.sha256(parent_key + struct.pack(f"<{len(tokens)}q", *tokens)).digest()
