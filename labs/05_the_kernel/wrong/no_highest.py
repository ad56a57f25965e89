"""exp is taken of the scores as they are."""

KILLED_BY = "large scores"
right = inner_loop


def inner_loop():
    return right().replace("max(highest, score)", "0")
