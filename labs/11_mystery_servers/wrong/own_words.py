"""A diagnosis in words of one's own."""

KILLED_BY = "words of the tables"
right = diagnoses


def diagnoses():
    return right() | {"A": Diagnosis("too small", [2, 3], "a_larger_pool")}
