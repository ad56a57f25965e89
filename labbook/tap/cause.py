"""Why two prompts diverge, where `labbook.explain` can tell: the one place of the tap that knows of it."""

from __future__ import annotations

from typing import Any

from labbook.errors import LabbookError


def cause_of(earlier: dict[str, Any], later: dict[str, Any]) -> str | None:
    """The cause and the field it stands in, as in "clock in messages[0].content"; None when nothing can tell."""
    try:
        from labbook.explain import explain  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    try:
        found = explain(earlier, later)
    except LabbookError:  # a body that it does not take for a prompt
        return None
    if found.cause == "none":
        return None
    return f"{found.cause} in {found.field}" if found.field else str(found.cause)
