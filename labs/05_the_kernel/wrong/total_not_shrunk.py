"""The total does not shrink when a higher score comes."""

KILLED_BY = "all lanes count"
right = inner_loop


def inner_loop():
    return right().replace("total * shrink + weight", "total + weight")
