"""The barrier comes after the highest score of all has been read."""

KILLED_BY = "one token for four groups"
right = merge_groups
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);\n"


def merge_groups():
    return right().replace(BARRIER, "").replace("float total_of_all", BARRIER + "float total_of_all")
