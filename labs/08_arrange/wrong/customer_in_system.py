"""The customer stands between persona and handbook, without the sentence around it."""

KILLED_BY = "as much is shared as can be"


def customer(ask):
    return chat(f"{persona(ask)}\n\n{ask.customer}\n\n{handbook(ask)}", ask.question)
