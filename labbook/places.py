"""Places that a person names for a file, judged before anything is read from there or written to it.

A FIFO would hang whoever opens it, and /dev/full would take a finished measurement and lose it.
"""

from __future__ import annotations

import argparse
import os
import stat
from pathlib import Path

from labbook.errors import LabbookError


def file_argument(text: str) -> Path:
    """The type of a file option. A name that ends in a slash means a folder, which Path would forget."""
    if text.endswith(("/", os.sep)):
        raise argparse.ArgumentTypeError(f"{text!r} names a folder: name a file")
    return Path(text)


def check_regular(path: Path, what: str) -> None:
    """Raise LabbookError when something that is no regular file stands at `path`; nothing may stand there."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise LabbookError(f"{what} {path} cannot be: {error.strerror}; name another file") from None
    if stat.S_ISDIR(mode):
        raise LabbookError(f"{what} {path} is a folder: name a file in it")
    if not stat.S_ISREG(mode):
        raise LabbookError(f"{what} {path} is a {_kind(mode)} and no regular file: name another")


def check_writable(path: Path, what: str) -> None:
    """Raise LabbookError unless a file at `path` could be made, or added to; makes nothing."""
    check_regular(path, what)
    place = Path(os.path.realpath(path))  # a link may lead to a file that is still to be made
    if not place.parent.is_dir():
        raise LabbookError(f"the folder {place.parent} does not exist: make it, or name another file")
    if not os.access(place if place.exists() else place.parent, os.R_OK | os.W_OK):
        raise LabbookError(f"{what} {path} cannot be written: no permission, or a disk that is read-only")


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "FIFO"
    return "socket" if stat.S_ISSOCK(mode) else "device"
