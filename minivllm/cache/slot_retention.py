"""What lies in a folder of slot files, and which go first when they take too much. What others wrote is left alone."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from minivllm.cache.slot_encryption import is_encrypted
from minivllm.cache.slot_errors import SlotError, SlotFileError
from minivllm.cache.slot_file import MAX_HEADER_BYTES, NO_SALT, read_metadata
from minivllm.cache.slot_folder import is_ours, left_overs, read, read_bytes


@dataclass(frozen=True, slots=True)
class SlotFileInfo:
    """What a slot file claims, unverified; None where only its key would tell."""

    name: str
    num_bytes: int
    modified_s: float
    is_encrypted: bool
    num_tokens: int | None
    model: str | None
    is_salted: bool | None


def slot_files(folder: Path) -> list[SlotFileInfo]:
    """The slot files directly in this folder, oldest first. Raises `SlotError` when it cannot be read."""
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".") and _is_regular(path)]
    except OSError as error:
        raise SlotError(f"the folder {folder} cannot be read: {error.strerror}") from None
    found = [_info(path) for path in paths if is_ours(path)]
    return sorted(found, key=lambda info: (info.modified_s, info.name))


def verify(folder: Path, passphrase: str | None) -> dict[str, str | None]:
    """Of each slot file, why it would be refused, whatever the engine; None: it is whole."""
    return {info.name: _fault(folder / info.name, passphrase) for info in slot_files(folder)}


def prune(
    folder: Path, limit_bytes: int | None, *, keep: Path | None = None, dry_run: bool = False
) -> list[SlotFileInfo]:
    """Delete the oldest slot files until the rest fits the limit, never `keep`; returns those deleted.

    What writers that were killed have left over is deleted, too; it is in no slot and in no list.
    """
    files = slot_files(folder)
    num_bytes = sum(info.num_bytes for info in files)
    doomed: list[SlotFileInfo] = []
    for info in files:
        if limit_bytes is None or num_bytes <= limit_bytes:
            break
        if keep is None or info.name != keep.name:
            doomed.append(info)
            num_bytes -= info.num_bytes
    if not dry_run:
        for path in [*(folder / info.name for info in doomed), *left_overs(folder)]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
    return doomed


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _info(path: Path) -> SlotFileInfo:
    found = os.lstat(path)
    start = read_bytes(path, at_most=MAX_HEADER_BYTES + 8)
    if is_encrypted(start):
        return SlotFileInfo(path.name, found.st_size, found.st_mtime, True, None, None, None)
    metadata = read_metadata(start)
    claimed = metadata.get("num_tokens", "")
    num_tokens = int(claimed) if claimed.isdecimal() and len(claimed) < 12 else None
    return SlotFileInfo(
        path.name,
        found.st_size,
        found.st_mtime,
        False,
        num_tokens,
        metadata.get("model"),
        metadata.get("salt") != NO_SALT,
    )


def _fault(path: Path, passphrase: str | None) -> str | None:
    try:
        read(path, passphrase)
    except SlotFileError as error:
        return str(error)
    return None
