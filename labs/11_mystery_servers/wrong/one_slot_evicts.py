"""A server with one slot is taken for one with a small pool: it forgets, but at once."""

KILLED_BY = "records prove it"
right = diagnoses


def diagnoses():
    return right() | {"E": Diagnosis("evicting", [14, 15], "a_larger_pool")}
