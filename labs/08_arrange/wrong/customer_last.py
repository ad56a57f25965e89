"""The customer stands behind the question, so a second question of the same customer cannot share him."""

KILLED_BY = "as much is shared as can be"


def customer(ask):
    return chat(f"{persona(ask)}\n\n{handbook(ask)}", f"{ask.question}\n\nThe customer is {ask.customer}.")
