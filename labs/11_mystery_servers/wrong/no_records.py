"""The right names, and no record for any of them: guessed, or heard from a neighbour."""

KILLED_BY = "evidence is given"
right = diagnoses


def diagnoses():
    return {letter: Diagnosis(one.name, [], one.setting) for letter, one in right().items()}
