"""Identity and salt are joined without a border."""

KILLED_BY = "tenants and models are apart"


def root_key(identity, salt):
    return hashlib.sha256(identity + (b"\x00" if salt is None else salt.encode())).digest()
