"""Lab 10: a conversation in a file. The question is in README.md; `labs check 10` says how far you are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class SlotFileError(Exception):
    """A file that is not restored; the message says why."""


def slow_may_be_restored(saved: tuple[object, ...], read: tuple[object, ...]) -> bool:
    """What exact means, slowly: identity, tokens and payload are all that was saved, and nothing else."""
    return saved == read


def save(path: Path, identity: Mapping[str, str], token_ids: list[int], payload: bytes) -> None:
    """Write one file; an older one at this place stays whole until the new one is complete."""
    raise NotImplementedError("save is not written yet")


def restore(path: Path, identity: Mapping[str, str]) -> tuple[list[int], bytes]:
    """Exactly what was saved. Raises SlotFileError for all else: another identity, a damaged file, no such file."""
    raise NotImplementedError("restore is not written yet")
