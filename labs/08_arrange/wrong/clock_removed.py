"""The clock is left out."""

KILLED_BY = "nothing is lost"


def clock(ask):
    return chat(f"{persona(ask)}\n\n{handbook(ask)}", ask.question)
