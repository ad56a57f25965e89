"""The prompts that passed, and the longest prefix that a new one shares with an earlier one."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from labbook.sequences import shared_length

MAX_PROMPTS = 500
MAX_CHARACTERS = 64 * 2**20


@dataclass(frozen=True)
class Prompt:
    """One prompt as text, or as token ids when it was sent so. Only prompts of one `lineage` can share pages."""

    number: int
    body: dict[str, Any]
    lineage: str
    content: str | list[int]

    @property
    def unit(self) -> str:
        return "characters" if isinstance(self.content, str) else "tokens"


Tokenize = Callable[[Prompt], list[int] | None]


@dataclass(frozen=True)
class Shared:
    """`length` leading units of a prompt of `of` are those of prompt `number`, which has `earlier_of`."""

    number: int
    length: int
    of: int
    earlier_of: int
    unit: str

    @property
    def diverges(self) -> bool:
        """False where one of the two prompts only continues the other."""
        return self.length < min(self.of, self.earlier_of)


class History:
    """The last prompts, in the order in which they arrived. For one thread."""

    def __init__(self) -> None:
        self._prompts: deque[Prompt] = deque(maxlen=MAX_PROMPTS)

    def add(self, number: int, path: str, body: object) -> None:
        """Remember a request body; one that holds no prompt is passed over."""
        prompt = prompt_of(number, path, body)
        if prompt is None:
            return
        self._prompts.append(prompt)
        while len(self._prompts) > 1 and sum(len(p.content) for p in self._prompts) > MAX_CHARACTERS:
            self._prompts.popleft()

    def best_earlier(
        self, number: int, tokenize: Tokenize = lambda prompt: None
    ) -> tuple[Shared, Prompt, Prompt] | None:
        """The longest shared prefix with an earlier prompt, that prompt, and prompt `number` itself.

        In tokens where the prompts were sent so or `tokenize` knows them, else in characters. The latest of equals.
        """
        own = next((prompt for prompt in self._prompts if prompt.number == number), None)
        if own is None:
            return None
        earlier = [p for p in self._prompts if p.number < number and (p.lineage, p.unit) == (own.lineage, own.unit)]
        if not earlier:
            return None
        best = max(earlier, key=lambda prompt: (shared_length(prompt.content, own.content), prompt.number))
        shared = _in_tokens(best, own, tokenize) or _shared(best, best.content, own.content, own.unit)
        return shared, best, own


def prompt_of(number: int, path: str, body: object) -> Prompt | None:
    if not isinstance(body, dict) or not {"messages", "prompt", "input"} & body.keys():
        return None
    lineage = json.dumps([path, body.get("model"), body.get("cache_salt")], sort_keys=True)
    prompt = body.get("prompt")
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return Prompt(number, body, lineage, prompt)
    return Prompt(number, body, lineage, prompt_text(body))


def prompt_text(body: dict[str, Any]) -> str:
    """What a template would render, roughly and in its usual order: tools, then one message after the other."""
    parts = [_as_text(body[name]) for name in ("tools", "functions", "system", "prompt", "input") if body.get(name)]
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        parts.append(_message_text(message) if isinstance(message, dict) else _as_text(message))
    return "\n".join(parts)


def _in_tokens(best: Prompt, own: Prompt, tokenize: Tokenize) -> Shared | None:
    if own.unit == "tokens" or (ours := tokenize(own)) is None or (theirs := tokenize(best)) is None:
        return None
    return _shared(best, theirs, ours, "tokens")


def _shared(best: Prompt, theirs: Sequence[Any], ours: Sequence[Any], unit: str) -> Shared:
    return Shared(best.number, shared_length(theirs, ours), len(ours), len(theirs), unit)


def _message_text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(
            str(part["text"]) if isinstance(part, dict) and isinstance(part.get("text"), str) else _as_text(part)
            for part in content
        )
    others = {name: value for name, value in message.items() if name not in ("role", "content")}
    lines = [str(message.get("role", "")), "" if content is None else _as_text(content)]
    return "\n".join(lines + ([_as_text(others)] if others else []))


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
