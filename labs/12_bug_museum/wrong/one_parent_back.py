"""The repaired key covers the tokens of the parent page and not what is before it."""

KILLED_BY = "the repair passes ours"


def fix_unchained_key(parent_key, token_ids):
    own = hashlib.sha256(struct.pack(f"<{len(token_ids)}q", *token_ids)).digest()[:16]
    return own + hashlib.sha256(parent_key[:16] + own).digest()
