"""Write a file that was not there before: nothing that somebody has is lost by a mistyped name."""

from __future__ import annotations

import os
from pathlib import Path

from labbook.errors import LabbookError, UsageError
from labbook.places import check_writable


def check_new(path: Path, what: str, force: bool, labbook: Path) -> None:
    """Raise UsageError when a file is at `path`, unless `force`, and for the labbook always.."""
    check_writable(path, what)
    if os.path.exists(labbook) and os.path.exists(path) and os.path.samefile(path, labbook):
        raise UsageError(f"{what} {path} would replace the labbook itself: name another file")
    if path.exists() and not force:
        raise UsageError(f"{what} {path} is there already: name another file, or replace it with --force")


def write_new(path: Path, text: str, what: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all. Check the place before."""
    data = text.encode("utf-8", errors="backslashreplace")  # half a character, as JSON can spell it
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise LabbookError(f"{what} was not written to {path}: {error.strerror}") from None
