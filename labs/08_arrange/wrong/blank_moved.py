"""The blank moves behind the first chapter, where it cannot be seen either."""

KILLED_BY = "as much is shared as can be"


def blank(ask):
    first, *others = ask.chapters
    return chat("\n\n".join([persona(ask), first + ask.blank, *others]), ask.question)
