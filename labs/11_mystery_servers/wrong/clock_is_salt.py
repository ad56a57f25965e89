"""A server with an inserted clock is taken for a salted one: both look, and find nothing."""

KILLED_BY = "records prove it"
right = diagnoses


def diagnoses():
    return right() | {"F": Diagnosis("salted_per_request", [16], "one_salt_per_tenant")}
