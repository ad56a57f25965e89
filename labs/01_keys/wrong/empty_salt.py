"""No salt and the empty salt are the same."""

KILLED_BY = "tenants and models are apart"


def root_key(identity, salt):
    return hashlib.sha256(struct.pack("<q", len(identity)) + identity + (salt or "").encode()).digest()
