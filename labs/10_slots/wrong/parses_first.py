"""The line of JSON is parsed before the digest is compared: a damaged file raises whatever the parser raises."""

KILLED_BY = "every changed byte is noticed"
right = restore


def restore(path, identity):
    if path.is_file():
        json.loads(path.read_bytes()[32:].partition(b"\n")[0])
    return right(path, identity)
