"""A marker before the salt says whether there is one, but not where the identity ends."""

KILLED_BY = "tenants and models are apart"


def root_key(identity, salt):
    return hashlib.sha256(identity + (b"0" if salt is None else b"1" + salt.encode())).digest()
