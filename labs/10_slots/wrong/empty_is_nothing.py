"""An empty list of tokens is saved as nothing, and comes back as nothing."""

KILLED_BY = "the README's example"
right = restore


def restore(path, identity):
    token_ids, payload = right(path, identity)
    return token_ids or [0], payload
