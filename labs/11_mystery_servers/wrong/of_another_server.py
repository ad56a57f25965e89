"""The record of one server is given for another."""

KILLED_BY = "evidence is given"
right = diagnoses


def diagnoses():
    return right() | {"A": Diagnosis("evicting", [5, 6], "a_larger_pool")}
