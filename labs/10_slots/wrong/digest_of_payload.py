"""The digest covers the keys and values alone, so the tokens can change."""

KILLED_BY = "every changed byte is noticed"


def pack(identity, token_ids, payload):
    head = json.dumps({"identity": dict(identity), "token_ids": token_ids}).encode("utf-8")
    return hashlib.sha256(payload).digest() + head + b"\n" + payload


def restore(path, identity):
    try:
        content = path.read_bytes()
        digest, (head, _, payload) = content[:32], content[32:].partition(b"\n")
        stored = json.loads(head)
        stored_identity, token_ids = stored["identity"], stored["token_ids"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SlotFileError(f"no slot file: {error}") from None
    if hashlib.sha256(payload).digest() != digest:
        raise SlotFileError("the file is damaged")
    require_same(stored_identity, dict(identity))
    return token_ids, payload
