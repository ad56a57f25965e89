"""The sums are read from this group's own place only."""

KILLED_BY = "some groups have nothing"
right = merge_groups


def merge_groups():
    return right().replace("sum_of[other * 64 + lane + 32 * i]", "sum_of[group * 64 + lane + 32 * i]")
