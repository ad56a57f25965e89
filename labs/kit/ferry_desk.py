"""What an application of the course has to say: a handbook, tools, two customers with a question each."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from labbook.prompts import Message

Tool = dict[str, Any]

CHAPTERS = (
    "Tickets are sold at the desk until ten minutes before departure. A return ticket is valid for a month. "
    "Children under six travel free, and a dog needs a ticket of its own, but no seat.",
    "Bicycles stand on the lower deck and are tied to the rail with the straps that hang there. Electric bicycles "
    "keep their battery in place, and nobody charges one on board.",
    "In a storm the small ferry stays in the harbour. Tickets of that day remain valid for the next crossing, and "
    "the desk calls everyone who left a telephone number.",
    "Parcels are handed in at the rear gate with a name and a house number on them. They cross with the first ferry "
    "of the morning, and wait for three days in the shed on the island.",
    "The lift to the upper deck carries one wheelchair at a time. The crew opens the side door, so that nobody has "
    "to use the ramp for cars, and keeps two places near the window free.",
    "Lost things lie in the grey cupboard behind the desk for half a year. Whoever asks for one describes it first, "
    "and signs the book when it was the right one.",
    "School classes come in the morning and leave in the afternoon. A teacher counts the children at the gate, the "
    "crew counts them on board, and the ferry waits until both numbers agree.",
    "Fuel, fireworks and gas bottles cross on Wednesday only, without passengers. The list of the cargo hangs in "
    "the wheelhouse, and the harbour master has a copy of it.",
)
"""Chapters of the handbook, in its own order."""

TOOLS: tuple[Tool, ...] = (
    {
        "name": "find_crossing",
        "description": "The next crossings to an island.",
        "parameters": {
            "island": {"type": "string", "description": "Name of the island"},
            "day": {"type": "string", "description": "Day of the week"},
            "bicycles": {"type": "integer", "description": "How many bicycles come along"},
        },
    },
    {
        "name": "book_ticket",
        "description": "Book places on a crossing.",
        "parameters": {
            "crossing": {"type": "string", "description": "Number of the crossing"},
            "places": {"type": "integer", "description": "How many people travel"},
        },
    },
    {
        "name": "read_weather",
        "description": "Wind and waves for the next hours.",
        "parameters": {
            "harbour": {"type": "string", "description": "Name of the harbour"},
            "hours": {"type": "integer", "description": "How far ahead to look"},
        },
    },
)

_DESK_DIGITS = "3579"  # no tokenizer of the course joins two of them, so every number of a desk has as many tokens
_DESK_LENGTH = 6


@dataclass(frozen=True)
class Ask:
    """Everything that one request has to say, before anybody puts it in an order.

    `desk` is the same for all requests of one application. `chapters` are those of the handbook that it may need, in
    the handbook's order; `ranking` names their places, best match first. `blank` is what a form left behind the first
    sentence: nothing, or a blank that nobody sees.
    """

    desk: str
    clock: str
    customer: str
    question: str
    chapters: tuple[str, ...]
    ranking: tuple[int, ...]
    tools: tuple[Tool, ...]
    blank: str

    def __post_init__(self) -> None:
        if sorted(self.ranking) != list(range(len(self.chapters))):
            raise ValueError(f"ranking is {self.ranking}: it names each of the {len(self.chapters)} chapters once")


def persona(ask: Ask) -> str:
    """The first sentence of every prompt of the desk."""
    return f"You answer for ferry desk {ask.desk}."


def handbook(ask: Ask) -> str:
    """All chapters, in the handbook's order."""
    return "\n\n".join(ask.chapters)


def chat(system: str, user: str) -> list[Message]:
    """A system message and a question."""
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def two_asks(desk: str, num_chapters: int = 4) -> tuple[Ask, Ask]:
    """Two customers of one desk, one after the other: what stays is the desk's, what changes is theirs."""
    if not 2 <= num_chapters <= len(CHAPTERS):
        raise ValueError(f"num_chapters is {num_chapters}: the handbook has 2 to {len(CHAPTERS)}")
    places = range(num_chapters)
    first = Ask(
        desk=desk,
        clock="09:41:07",
        customer="Alice Moreau, a teacher from the island who travels with her class",
        question="May our dog come along?",
        chapters=CHAPTERS[:num_chapters],
        ranking=tuple(places),
        tools=TOOLS,
        blank="",
    )
    second = replace(
        first,
        clock="10:26:53",
        customer="Bernd Okafor, a courier from the mainland who crosses every day",
        question="Where do I put the bicycle?",
        ranking=tuple(reversed(places)),
        tools=tuple(_registered_otherwise(tool) for tool in TOOLS),
        blank=" ",
    )
    return first, second


def fresh_desks(count: int) -> list[str]:
    """`count` numbers that differ from each other, and very likely from those of any earlier run.

    With its number in the first sentence a prompt shares nothing but the head of the template with other desks, so
    what a server remembers of an earlier run does not help it.
    """
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(secrets.choice(_DESK_DIGITS) for _ in range(_DESK_LENGTH))] = None
    return list(found)


def _registered_otherwise(tool: Tool) -> Tool:
    """The same tool with the keys of its schema in another order, as a program builds them that never sorts."""
    names: Sequence[str] = list(tool["parameters"])
    return {**tool, "parameters": {name: tool["parameters"][name] for name in reversed(names)}}
