"""Whether a difference is what it should be: another question at the end of the prompt."""

from __future__ import annotations

from labbook.explain.body import Body
from labbook.explain.divergence import Divergence

_ASKING_ROLES = ("user", "tool", "function")
# More equal tokens than this behind the difference are worth moving, wherever they stand.
_MANY_TOKENS = 128


def is_other_ending(divergence: Divergence, page_tokens: int) -> bool:
    """True when a user's message, a tool's result or the end of a text prompt differs, and little is lost by it."""
    lost = divergence.equal_in_fields
    a, b = divergence.a.body, divergence.b.body
    if divergence.region is None or a.is_chat != b.is_chat:
        return False
    if not a.is_chat:
        return not _is_much(lost, divergence.position, page_tokens)
    message = divergence.region.message
    if message is None or not all(_asks(body, message) for body in (a, b)):
        return False
    is_last = message == len(a.messages) - 1 or message == len(b.messages) - 1
    return not _is_much(lost, divergence.position, page_tokens) if is_last else lost < page_tokens


def _asks(body: Body, message: int) -> bool:
    role = body.role(message) if message < len(body.messages) else None
    return role in _ASKING_ROLES


def _is_much(lost_tokens: int, shared_tokens: int, page_tokens: int) -> bool:
    return lost_tokens >= page_tokens and (lost_tokens >= _MANY_TOKENS or 2 * lost_tokens >= shared_tokens)
