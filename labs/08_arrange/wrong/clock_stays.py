"""The clock stays in the system message, at its end instead of its beginning, and the handbook moves behind it."""

KILLED_BY = "as much is shared as can be"


def clock(ask):
    return chat(f"{persona(ask)} Current time: {ask.clock}.", f"{handbook(ask)}\n\n{ask.question}")
