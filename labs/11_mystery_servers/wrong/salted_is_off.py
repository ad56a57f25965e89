"""A salted server restores nothing and is taken for one whose cache is off."""

KILLED_BY = "records prove it"
right = diagnoses


def diagnoses():
    return right() | {"C": Diagnosis("cache_off", [7], "turn_the_cache_on")}
