"""The passages keep their order, but the line that says which fits best stands before them."""

KILLED_BY = "as much is shared as can be"


def passages(ask):
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(ask.chapters, start=1))
    best = ", ".join(f"[{place + 1}]" for place in ask.ranking)
    return chat(persona(ask), f"The best match first: {best}.\n\n{listed}\n\nQuestion: {ask.question}")
