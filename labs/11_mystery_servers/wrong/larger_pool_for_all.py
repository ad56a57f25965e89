"""A larger pool is the answer to everything."""

KILLED_BY = "the setting mends it"
right = diagnoses


def diagnoses():
    return right() | {"E": Diagnosis("one_slot", [14], "a_larger_pool")}
