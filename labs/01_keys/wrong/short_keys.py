"""Eight bytes of a digest: short enough to be made to collide."""

KILLED_BY = "keys are long enough"


def page_key(parent_key, token_ids):
    return hashlib.sha256(parent_key + struct.pack(f"<{len(token_ids)}q", *token_ids)).digest()[:8]
