"""The groups do not wait for each other."""

KILLED_BY = "one token for four groups"
right = merge_groups


def merge_groups():
    return right().replace("threadgroup_barrier(mem_flags::mem_threadgroup);", "")
