"""The passages are numbered from 1, and the best ones are named from 0."""

KILLED_BY = "the ranking is said"


def passages(ask):
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(ask.chapters, start=1))
    best = ", ".join(f"[{place}]" for place in ask.ranking)
    return chat(persona(ask), f"Passages:\n\n{listed}\n\nThe best match first: {best}.\n\nQuestion: {ask.question}")
