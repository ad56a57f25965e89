"""Only the best passage is told."""

KILLED_BY = "nothing is lost"


def passages(ask):
    return chat(persona(ask), f"Passage: {ask.chapters[ask.ranking[0]]}\n\nQuestion: {ask.question}")
