"""The review finds the patch harmless."""

KILLED_BY = "the statements"


def review():
    return {"b", "e"}
