"""The key covers the first bytes of the parent's key, which are the parent's tokens: only one page back."""

KILLED_BY = "keys go back to the first page"


def page_key(parent_key, token_ids):
    own = struct.pack(f"<{len(token_ids)}q", *token_ids)
    return (own + b"\x00" * 16)[:16] + hashlib.sha256(parent_key[:16] + own).digest()
