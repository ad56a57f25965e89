"""The tap's own file: one JSON object a line, for the eyes of its owner only. It holds whole prompts and answers."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from labbook.errors import LabbookError
from labbook.places import check_regular
from labbook.record import from_line, to_line

_GIT_IGNORE = "# Prompts and answers: never to be committed.\n*\n"


class PrivateFile:
    """Append entries to `path`, which is made with mode 0600, in a folder that is made with mode 0700.

    Raises LabbookError when a file of that name can be read by others, or belongs to somebody else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        _make_folder(path.parent)
        check_regular(path, "the file of the tap")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise LabbookError(f"cannot write the file of the tap {path}: {error.strerror}") from None
        try:
            _refuse_what_is_not_private(path, os.fstat(self._descriptor))
        except LabbookError:
            os.close(self._descriptor)
            raise
        self._is_torn = False

    def append(self, entry: dict[str, Any]) -> None:
        """Add one entry with one write. Raises LabbookError when the disk is full."""
        line = (to_line(entry) + "\n").encode("utf-8")
        data = b"\n" + line if self._is_torn else line
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            raise LabbookError(f"an entry was not written to {self.path}: {error.strerror}") from None
        self._is_torn = written < len(data)
        if self._is_torn:
            raise LabbookError(f"only {written} of {len(data)} bytes were written to {self.path}: is the disk full?")

    def close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1  # a late entry must not land in whatever file gets the number next


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a tap's file, in order; lines that are torn are left out."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entries.append(from_line(line.decode("utf-8")))
        except (LabbookError, UnicodeDecodeError):
            continue
    return entries


def request_bodies(path: Path) -> list[dict[str, Any]]:
    """The request bodies of a tap's file that are JSON objects, in the order in which they were asked."""
    entries = sorted(read_entries(path), key=lambda entry: (entry["recorded_at"], entry["number"]))
    return [entry["body"] for entry in entries if entry.get("body") is not None]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    except OSError as error:
        raise LabbookError(f"the folder {folder} of the tap's file cannot be made: {error.strerror}") from None
    (folder / ".gitignore").write_text(_GIT_IGNORE, encoding="utf-8")


def _refuse_what_is_not_private(path: Path, status: os.stat_result) -> None:
    if os.name == "nt":  # its modes do not tell who may read
        return
    if status.st_uid != os.geteuid():
        raise LabbookError(f"the file {path} belongs to somebody else: name another with --out")
    if mode := stat.S_IMODE(status.st_mode) & 0o077:
        raise LabbookError(
            f"the file {path} can be read or written by others (mode {mode:03o}): make it private with chmod 600, "
            "or name another with --out"
        )
