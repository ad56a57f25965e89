"""The counters are believed, and a server that reuses nothing passes for one that evicts."""

KILLED_BY = "records prove it"
right = diagnoses


def diagnoses():
    return right() | {"B": Diagnosis("evicting", [5, 6], "a_larger_pool")}
