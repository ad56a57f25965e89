"""The clock is cut to minutes, which hits for a minute and then says less."""

KILLED_BY = "nothing is lost"


def clock(ask):
    return chat(f"{persona(ask)} Current time: {ask.clock[:5]}.\n\n{handbook(ask)}", ask.question)
