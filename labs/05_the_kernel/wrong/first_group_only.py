"""The highest score of group 0 is taken for that of all."""

KILLED_BY = "large scores, merged"
right = merge_groups


def merge_groups():
    return right().replace("max(highest_of_all, highest_of[other])", "highest_of[0]")
