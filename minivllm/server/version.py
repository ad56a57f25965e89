"""The version this program reports about itself."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """The installed distribution's version; "0+source" when run from a tree that is not installed."""
    try:
        return metadata.version("prefix-cache-lab")
    except metadata.PackageNotFoundError:
        return "0+source"
