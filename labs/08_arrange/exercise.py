"""Lab 08: prompts that hit. The question is in README.md; `labs check 08` says how far you are."""

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
    raise NotImplementedError("clock is not written yet")


def wrong_tools(ask: Ask) -> Messages:
    return chat(f"{persona(ask)} Call one of these tools:\n\n{json.dumps(ask.tools)}", ask.question)


def tools(ask: Ask) -> Messages:
    """The persona, every tool with its name, description and schema, the question."""
    raise NotImplementedError("tools is not written yet")


def wrong_customer(ask: Ask) -> Messages:
    return chat(f"{persona(ask)}\nThe customer is {ask.customer}.\n\n{handbook(ask)}", ask.question)


def customer(ask: Ask) -> Messages:
    """The persona, the handbook, the customer, the question."""
    raise NotImplementedError("customer is not written yet")


def wrong_passages(ask: Ask) -> Messages:
    ranked = [ask.chapters[place] for place in ask.ranking]
    listed = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(ranked, start=1))
    return chat(persona(ask), f"Passages, the best match first:\n\n{listed}\n\nQuestion: {ask.question}")


def passages(ask: Ask) -> Messages:
    """The persona, all passages, which of them fit best and in which order, the question."""
    raise NotImplementedError("passages is not written yet")


def wrong_blank(ask: Ask) -> Messages:
    return chat(f"{persona(ask)}{ask.blank}\n\n{handbook(ask)}", ask.question)


def blank(ask: Ask) -> Messages:
    """The persona, the handbook, the question; `ask.blank` is nothing, or a blank that nobody can see."""
    raise NotImplementedError("blank is not written yet")
