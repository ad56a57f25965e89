"""Five prompts as people write them, each with the repair that lets a prefix cache help, and nothing left out."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labbook.prompts import Message
from labs.kit.ferry_desk import Ask, chat, handbook, persona

Builder = Callable[[Ask], list[Message]]

SIDES = ("before", "after")


@dataclass(frozen=True)
class Arrangement:
    """One way to arrange a prompt. `cause` is what `labbook explain` calls the fault; `uses` are fields of Ask.

    `why` says how people come to write it so.
    """

    key: str
    title: str
    why: str
    cause: str
    uses: tuple[str, ...]
    before: Builder
    after: Builder

    def builder(self, side: str) -> Builder:
        if side not in SIDES:
            raise ValueError(f"side is {side!r}: choose one of {', '.join(SIDES)}")
        return self.before if side == "before" else self.after

    def messages(self, side: str, asks: Sequence[Ask]) -> list[list[Message]]:
        """The prompts of these requests, arranged as they were before or after the repair."""
        return [self.builder(side)(ask) for ask in asks]

    def source(self, side: str) -> str:
        """The builder's code, for a reader."""
        return inspect.getsource(self.builder(side)).rstrip()


def missing(arrangement: Arrangement, ask: Ask, messages: Sequence[Message]) -> list[str]:
    """What the request has to say and these messages do not: empty when a repair has lost nothing.

    Blanks do not count, nor does the order of the pieces: that is what a repair changes.
    """
    said = _squeezed("\n".join(message["content"] for message in messages))
    return [
        piece for name in ("desk", "question", *arrangement.uses) for piece in _pieces(ask, name) if piece not in said
    ]


def _pieces(ask: Ask, name: str) -> list[str]:
    if name == "chapters":
        return [_squeezed(chapter) for chapter in ask.chapters]
    if name == "tools":
        schemas = [schema for tool in ask.tools for schema in tool["parameters"].items()]
        named = [json.dumps(text) for tool in ask.tools for text in (tool["name"], tool["description"])]
        return named + [json.dumps(text) for key, schema in schemas for text in (key, schema["description"])]
    return [_squeezed(str(getattr(ask, name)))]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def clock_on_top(ask: Ask) -> list[Message]:
    system = f"{persona(ask)} Current time: {ask.clock}.\n\n{handbook(ask)}"
    return chat(system, ask.question)


def clock_at_the_end(ask: Ask) -> list[Message]:
    system = f"{persona(ask)}\n\n{handbook(ask)}"
    return chat(system, f"{ask.question}\n\nCurrent time: {ask.clock}.")


def tools_as_they_come(ask: Ask) -> list[Message]:
    system = f"{persona(ask)} Call one of these tools:\n\n{json.dumps(ask.tools)}"
    return chat(system, ask.question)


def tools_sorted(ask: Ask) -> list[Message]:
    tools = sorted(ask.tools, key=lambda tool: str(tool["name"]))
    system = f"{persona(ask)} Call one of these tools:\n\n{json.dumps(tools, sort_keys=True)}"
    return chat(system, ask.question)


def customer_before_handbook(ask: Ask) -> list[Message]:
    system = f"{persona(ask)}\nThe customer is {ask.customer}.\n\n{handbook(ask)}"
    return chat(system, ask.question)


def customer_behind_handbook(ask: Ask) -> list[Message]:
    system = f"{persona(ask)}\n\n{handbook(ask)}"
    return chat(system, f"The customer is {ask.customer}.\n\n{ask.question}")


def passages_by_rank(ask: Ask) -> list[Message]:
    ranked = [ask.chapters[place] for place in ask.ranking]
    passages = [f"[{number}] {text}" for number, text in enumerate(ranked, start=1)]
    user = "\n\n".join(["Passages, the best match first:", *passages, f"Question: {ask.question}"])
    return chat(persona(ask), user)


def passages_by_number(ask: Ask) -> list[Message]:
    passages = [f"[{number}] {text}" for number, text in enumerate(ask.chapters, start=1)]
    best = ", ".join(f"[{place + 1}]" for place in ask.ranking)
    user = "\n\n".join(["Passages:", *passages, f"The best match first: {best}.", f"Question: {ask.question}"])
    return chat(persona(ask), user)


def text_as_typed(ask: Ask) -> list[Message]:
    return chat(f"{persona(ask)}{ask.blank}\n\n{handbook(ask)}", ask.question)


def text_trimmed(ask: Ask) -> list[Message]:
    typed = f"{persona(ask)}{ask.blank}\n\n{handbook(ask)}"
    return chat("\n".join(line.strip() for line in typed.splitlines()), ask.question)


ARRANGEMENTS = (
    Arrangement(
        key="clock",
        title="a clock on top",
        why="the model should know the time, and the first line is where one thinks of it",
        cause="clock",
        uses=("clock", "chapters"),
        before=clock_on_top,
        after=clock_at_the_end,
    ),
    Arrangement(
        key="tools",
        title="an unsorted tool schema",
        why="a program builds the schema, and the order of its keys is an accident",
        cause="key_order",
        uses=("tools",),
        before=tools_as_they_come,
        after=tools_sorted,
    ),
    Arrangement(
        key="customer",
        title="the user before the corpus",
        why="one introduces the person first, and then hands over the text",
        cause="user_before_corpus",
        uses=("customer", "chapters"),
        before=customer_before_handbook,
        after=customer_behind_handbook,
    ),
    Arrangement(
        key="passages",
        title="re-ranked passages",
        why="a search sorts what it finds by how well it fits, for every question anew",
        cause="reranked_passages",
        uses=("chapters",),
        before=passages_by_rank,
        after=passages_by_number,
    ),
    Arrangement(
        key="blank",
        title="a stray blank",
        why="a form keeps the blank that somebody typed, and nobody can see it",
        cause="whitespace",
        uses=("chapters",),
        before=text_as_typed,
        after=text_trimmed,
    ),
)
"""In the order in which the course tells them."""


def arrangement(key: str) -> Arrangement:
    """One of the five by its key. Raises ValueError with their names."""
    for one in ARRANGEMENTS:
        if one.key == key:
            return one
    raise ValueError(f"no arrangement is called {key!r}: choose one of {', '.join(one.key for one in ARRANGEMENTS)}")
