"""Only the first 32 numbers of a head are in the score."""

KILLED_BY = "all lanes count"
right = inner_loop


def inner_loop():
    return right().replace(" + q[1] * keys[at + 32]", "")
