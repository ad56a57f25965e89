"""The customer is told last, in a message that asks nothing."""

KILLED_BY = "it is a chat"


def customer(ask):
    messages = chat(f"{persona(ask)}\n\n{handbook(ask)}", ask.question)
    return [*messages, {"role": "user", "content": f"The customer is {ask.customer}."}]
