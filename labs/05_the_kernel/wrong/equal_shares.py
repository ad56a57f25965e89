"""Every group that saw a token weighs the same."""

KILLED_BY = "some groups have nothing"
right = merge_groups


def merge_groups():
    return right().replace("exp(highest_of[other] - highest_of_all)", "1")
