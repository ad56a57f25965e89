"""Whether a difference is what it should be: another question at the end of the prompt."""

from __future__ import annotations

from labbook.explain.divergence import Divergence

_ASKING_ROLES = ("user", "tool", "function")
_ENDING_ROLES = (*_ASKING_ROLES, "assistant")  # a prompt may end in the beginning of an answer
# So many equal tokens behind the difference are worth moving, wherever they stand; so few pages nowhere.
_MANY_TOKENS, _FEW_PAGES = 128, 2


def is_other_ending(divergence: Divergence, page_tokens: int) -> bool:
    """True when a user's message, a tool's result or the end of a text prompt differs, and little is lost by it."""
    lost = divergence.equal_in_fields if divergence.b.text else divergence.equal_after
    a, b = divergence.a.body, divergence.b.body
    if not a.is_chat and not b.is_chat:
        return not _is_much(lost, divergence.position, page_tokens)
    message = divergence.region.message if divergence.region else None
    if message is None or message >= min(len(a.messages), len(b.messages)):
        return False
    is_last = [message == len(body.messages) - 1 for body in (a, b)]
    roles = _ENDING_ROLES if all(is_last) else _ASKING_ROLES
    if not all(body.role(message) in roles for body in (a, b)):
        return False
    return not _is_much(lost, divergence.position, page_tokens) if any(is_last) else lost < page_tokens


def _is_much(lost_tokens: int, shared_tokens: int, page_tokens: int) -> bool:
    return lost_tokens >= _FEW_PAGES * page_tokens and (lost_tokens >= _MANY_TOKENS or 2 * lost_tokens >= shared_tokens)
