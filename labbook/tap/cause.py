"""Why two prompts diverge, where `labbook.explain` can tell: the one place of the tap that knows of it."""

from __future__ import annotations

from typing import Any


def cause_of(earlier: dict[str, Any], later: dict[str, Any]) -> str | None:
    """The cause in a few words; None when it is not known, or there is nothing installed that could tell."""
    try:
        from labbook.explain import explain  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    found = explain(earlier, later)
    cause = getattr(found, "cause", None) or found
    return None if cause is None else str(cause)
