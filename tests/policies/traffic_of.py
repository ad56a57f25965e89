"""Requests short enough to write down."""

from __future__ import annotations

from minivllm.policies.access import Access
from minivllm.policies.protocol import CacheDesign


def ask(prompt: str, answer: str = "", session: str | None = None, salt: str | None = None, at: float = 0.0) -> Access:
    """One token for each letter."""
    ids, output = tuple(map(ord, prompt)), tuple(map(ord, answer))
    return Access(ids, len(ids), output, len(output), at, session, salt)


def found(design: CacheDesign, *prompts: str | Access) -> list[int]:
    """How many units each request finds, each ending before the next arrives."""
    counts = []
    for prompt in prompts:
        access = ask(prompt) if isinstance(prompt, str) else prompt
        counts.append(design.lookup(access))
        design.insert(access)
    return counts
