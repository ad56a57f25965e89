"""That something is lost after six others does not tell a small pool from one slot."""

KILLED_BY = "records prove it"
right = diagnoses


def diagnoses():
    return right() | {"A": Diagnosis("evicting", [3], "a_larger_pool")}
