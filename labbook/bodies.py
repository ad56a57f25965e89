"""Request bodies that every server takes: optional fields are dropped one at a time when one is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from labbook.prompts import Message, without_system

# What a body can do without, the cheapest loss first. Dropping "max_tokens" sends max_completion_tokens instead,
# dropping "system" moves its text into the user message.
OPTIONAL = ("seed", "temperature", "system", "max_tokens", "stream_options", "stream")

_NAMED_BY = {
    "seed": r"\bseed\b",
    "temperature": r"\btemperature\b",
    "system": r"\bsystem\b",
    "max_tokens": r"\bmax_(completion_)?tokens\b",
    "stream_options": r"\bstream_options\b",
    "stream": r"\bstream\b",
}

Shape = frozenset[str]
FULL: Shape = frozenset(OPTIONAL)


def chat_body(model: str, messages: list[Message], max_tokens: int, shape: Shape) -> dict[str, Any]:
    """A chat completion request that uses the optional fields in `shape`."""
    body: dict[str, Any] = {
        "model": model,
        "messages": messages if "system" in shape else without_system(messages),
        "max_tokens" if "max_tokens" in shape else "max_completion_tokens": max_tokens,
    }
    if "stream" in shape:
        body["stream"] = True
        if "stream_options" in shape:
            body["stream_options"] = {"include_usage": True}
    if "temperature" in shape:
        body["temperature"] = 0
    if "seed" in shape:
        body["seed"] = 0
    return body


def named_field(message: str, shape: Shape) -> str | None:
    """The one optional field that a refusal speaks of; None when it names none, or several."""
    named = [name for name in OPTIONAL if name in shape and re.search(_NAMED_BY[name], message)]
    return named[0] if len(named) == 1 else None


def smaller_shapes(shape: Shape) -> Iterator[Shape]:
    """Shapes to try when a refusal names no field: without each field in turn, then without more and more."""
    present = [name for name in OPTIONAL if name in shape]
    yield from (shape - {name} for name in present)
    yield from (shape - set(present[:count]) for count in range(2, len(present) + 1))
