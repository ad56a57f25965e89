"""Faults that change what a request says before the engine sees it: a clock in the prompt, fields that are refused."""

from __future__ import annotations

import random
import time
from typing import Any

from labs.kit.doubles.faults import Faults

# How servers speak of what they refuse.
_REFUSALS = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    "system": "System role not supported",
}


def with_clock(messages: list[dict[str, Any]], faults: Faults) -> list[dict[str, Any]]:
    """The time of day in front of the first message, as a template or a proxy may put it there."""
    if not faults.clock_injected or not messages:
        return messages
    nanoseconds = f"{time.time_ns() % 10**9:09}"[::-1]  # the fastest digit first: no two prompts begin alike
    stamped = f"[{nanoseconds}, {time.strftime('%H:%M:%S')}] {messages[0].get('content')}"
    return [{**messages[0], "content": stamped}, *messages[1:]]


def refusal(body: dict[str, Any], faults: Faults) -> str | None:
    """Why this request is refused, in the words of a server, or None."""
    messages = body.get("messages")
    has_system = isinstance(messages, list) and any(map(_is_system, messages))
    used = {*body, *({"system"} if has_system else ())}
    for name in faults.refused_fields:
        if name in used:
            named = _REFUSALS.get(name, f"Unsupported parameter: '{name}'")
            return named if faults.refusal_names_field else "Bad Request"
    return None


def stranger_prompt(num_tokens: int, number: int, vocab_size: int) -> list[int]:
    """Somebody else's prompt: token ids that no other request begins with."""
    return random.Random(f"stranger {number}").choices(range(vocab_size // 2, vocab_size), k=num_tokens)


def _is_system(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") == "system"
