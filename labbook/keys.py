"""API keys come from the environment, never from an argument that other users of the machine could see."""

from __future__ import annotations

import os

from labbook.errors import UsageError


def api_key(name: str | None) -> str | None:
    """The key in the environment variable `name`. Raises UsageError when it is not set."""
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise UsageError(f"the environment variable {name} named by --api-key-env is not set")
    return key
