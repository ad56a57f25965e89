"""The length stands in the head, and what follows the end is not looked at."""

KILLED_BY = "every length is noticed"


def pack(identity, token_ids, payload):
    fields = {"identity": dict(identity), "token_ids": token_ids, "length": len(payload)}
    body = json.dumps(fields).encode("utf-8") + b"\n" + payload
    return hashlib.sha256(body).digest() + body


def restore(path, identity):
    try:
        content = path.read_bytes()
        head, _, rest = content[32:].partition(b"\n")
        stored = json.loads(head)
        payload = rest[: stored["length"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SlotFileError(f"no slot file: {error}") from None
    if hashlib.sha256(head + b"\n" + payload).digest() != content[:32]:
        raise SlotFileError("the file is damaged")
    require_same(stored["identity"], dict(identity))
    return stored["token_ids"], payload
