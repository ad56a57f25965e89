"""Differences that no field of a body shows: other tokens for the same text, another rendering of a message."""

from __future__ import annotations

from labbook.explain.divergence import Divergence
from labbook.explain.json_place import canonical
from labbook.explain.rendered import Rendered

_BOUNDARIES = 12  # tokens after the difference in which both splits must meet again


def find_seam(divergence: Divergence) -> str | None:
    """How sure it is that the same text stands here in other tokens; None when it does not."""
    if not is_seam(divergence):
        return None
    is_typed = not divergence.a.body.is_chat and not _has_ids(divergence)
    # A text prompt that grows within a word may have been continued by a person as well.
    return "possible" if is_typed else "certain"


def is_seam(divergence: Divergence) -> bool:
    """Where one text ends and the other goes on, or where ids stand against text."""
    a, b, position = divergence.a, divergence.b, divergence.position
    if not a.text or not b.text or position == min(len(a.tokens), len(b.tokens)):
        return False
    if divergence.offset == min(len(a.text), len(b.text)):
        return True  # the last token of the shorter text reaches over its end in the longer one
    if not _has_ids(divergence):
        return False  # one tokenizer cuts equal texts alike
    return bool(_ends(a, position, divergence.offset) & _ends(b, position, divergence.offset))


def _has_ids(divergence: Divergence) -> bool:
    return any(side.body.prompt_ids is not None for side in (divergence.a, divergence.b))


def _ends(side: Rendered, position: int, offset: int) -> set[int]:
    """Where the tokens from `position` on end, as far as both texts are equal."""
    last = min(len(side.tokens), position + _BOUNDARIES)
    ends = (side.start(after) for after in range(position + 1, last + 1))
    return {end for end in ends if side.start(position) < end <= offset}


def history_differs(divergence: Divergence) -> bool:
    """The messages up to here are equal in both bodies, and yet the template made other text of them."""
    a, b = divergence.a.body, divergence.b.body
    if not a.is_chat or not b.is_chat or divergence.a.unit != "token":
        return False
    if divergence.region is not None and _is_new(divergence):
        return False
    if canonical(a.tools) != canonical(b.tools) or canonical(a.template_arguments) != canonical(b.template_arguments):
        return False
    behind = _next_message(divergence)
    equal = _equal_messages(divergence)
    return equal == _shorter(divergence) if behind is None else behind < equal


def _is_new(divergence: Divergence) -> bool:
    """The differing field belongs to a message that only one body has, or that differs between them."""
    message = divergence.region.message if divergence.region else None
    return message is None or _equal_messages(divergence) <= message < _shorter(divergence)


def _equal_messages(divergence: Divergence) -> int:
    a, b = divergence.a.body.messages, divergence.b.body.messages
    return next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), _shorter(divergence))


def _shorter(divergence: Divergence) -> int:
    return min(len(divergence.a.body.messages), len(divergence.b.body.messages))


def _next_message(divergence: Divergence) -> int | None:
    """The message of the difference, or the next behind it, in the prompt with fewer messages; None at its end."""
    a, b = divergence.a.body, divergence.b.body
    known = divergence.regions[0 if len(a.messages) <= len(b.messages) else 1]
    behind = [one.message for one in known.listed if one.message is not None and one.end > divergence.offset]
    return min(behind, default=None)
