"""A file that is not there raises FileNotFoundError."""

KILLED_BY = "what is no slot file is refused"
right = restore


def restore(path, identity):
    path.stat()
    return right(path, identity)
