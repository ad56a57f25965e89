"""Lab 08, a solution: what stays stands in front, what changes behind it, and what has no order gets one."""

from __future__ import annotations

import json

from labs.kit.ferry_desk import Ask, chat, handbook, persona

Messages = list[dict[str, str]]


def slow_shared_words(one: Messages, other: Messages) -> int:
    """What shared means, slowly: equal words from the beginning on, over all messages."""
    words = [" ".join(message["content"] for message in messages).split(" ") for messages in (one, other)]
    place = 0
    while place < min(map(len, words)) and words[0][place] == words[1][place]:
        place += 1
    return place


def wrong_clock(ask: Ask) -> Messages:
    return chat(f"{persona(ask)} Current time: {ask.clock}.\n\n{handbook(ask)}", ask.question)


def clock(ask: Ask) -> Messages:
    """The persona, the handbook, the question, the time."""
    return chat(f"{persona(ask)}\n\n{handbook(ask)}", f"{ask.question}\n\nCurrent time: {ask.clock}.")


def wrong_tools(ask: Ask) -> Messages:
    return chat(f"{persona(ask)} Call one of these tools:\n\n{json.dumps(ask.tools)}", ask.question)


def tools(ask: Ask) -> Messages:
    """The persona, every tool with its name, description and schema, the question."""
    listed = sorted(ask.tools, key=lambda tool: str(tool["name"]))
    return chat(f"{persona(ask)} Call one of these tools:\n\n{json.dumps(listed, sort_keys=True)}", ask.question)


def wrong_customer(ask: Ask) -> Messages:
    return chat(f"{persona(ask)}\nThe customer is {ask.customer}.\n\n{handbook(ask)}", ask.question)


def customer(ask: Ask) -> Messages:
    """The persona, the handbook, the customer, the question."""
    return chat(f"{persona(ask)}\n\n{handbook(ask)}", f"The customer is {ask.customer}.\n\n{ask.question}")


def wrong_passages(ask: Ask) -> Messages:
    ranked = [ask.chapters[place] for place in ask.ranking]
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(ranked, start=1))
    return chat(persona(ask), f"Passages, the best match first:\n\n{listed}\n\nQuestion: {ask.question}")


def passages(ask: Ask) -> Messages:
    """The persona, all passages, which of them fit best and in which order, the question."""
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(ask.chapters, start=1))
    best = ", ".join(f"[{place + 1}]" for place in ask.ranking)
    return chat(persona(ask), f"Passages:\n\n{listed}\n\nThe best match first: {best}.\n\nQuestion: {ask.question}")


def wrong_blank(ask: Ask) -> Messages:
    return chat(f"{persona(ask)}{ask.blank}\n\n{handbook(ask)}", ask.question)


def blank(ask: Ask) -> Messages:
    """The persona, the handbook, the question; `ask.blank` is nothing, or a blank that nobody can see."""
    return chat(f"{persona(ask)}\n\n{handbook(ask)}", ask.question)
