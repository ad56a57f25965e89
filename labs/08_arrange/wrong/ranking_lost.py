"""The passages keep their order, and nobody says which fits best."""

KILLED_BY = "the ranking is said"


def passages(ask):
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(ask.chapters, start=1))
    return chat(persona(ask), f"Passages:\n\n{listed}\n\nQuestion: {ask.question}")
