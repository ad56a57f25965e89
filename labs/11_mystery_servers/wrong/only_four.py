"""Four of six."""

KILLED_BY = "all six"
right = diagnoses


def diagnoses():
    return {letter: one for letter, one in right().items() if letter in "ABCD"}
