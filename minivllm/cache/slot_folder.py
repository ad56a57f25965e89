"""The folder of slot files: which names are good, and how a file comes to be whole or not at all.

A file is written beside its target under a name of its own, flushed, and renamed over it: whoever looks sees the old
file or the new one, after a power cut, too. Whoever writes holds a lock on the temporary file, so that one that nobody
holds is known to be left over. Files have mode 0600, folders made here 0700: a slot file is the conversation.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from minivllm.cache.slot_encryption import decrypt, encrypt, is_encrypted
from minivllm.cache.slot_errors import SlotError, SlotFileError, SlotNameError, SlotWriteError
from minivllm.cache.slot_file import MAX_HEADER_BYTES, SlotContent, decode, encode, read_metadata

MAX_NAME_CHARS = 200
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]*")
_LEFT_OVER = re.compile(r"\.minivllm-slot-[0-9a-f]{16}\.tmp")


def path_in(folder: Path, name: object) -> Path:
    """The file of this name inside `folder`, symbolic links resolved. Raises `SlotNameError`."""
    if not isinstance(name, str):
        raise SlotNameError(f"filename={name!r:.80} is not a string: give a plain file name")
    if len(name) > MAX_NAME_CHARS:
        raise SlotNameError(f"a filename of {len(name)} characters is too long: give at most {MAX_NAME_CHARS}")
    if not _NAME.fullmatch(name):
        raise SlotNameError(
            f"filename={name!r:.80} is not a plain name: give letters, digits and _ . + = @ -, the first a letter, "
            "a digit or _"
        )
    path = Path(os.path.realpath(folder / name))
    if path.parent != Path(os.path.realpath(folder)):
        raise SlotNameError(f"filename={name!r} leads out of the folder of slot files: give another name")
    return path


def make_private(folder: Path) -> None:
    """Make the folder, for this user alone. Raises `SlotError` when it is there and somebody else's or no folder."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid() or found.st_mode & stat.S_ISVTX:
            raise SlotError(f"the folder {folder} is not this user's own: give another slot_save_path")
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise SlotError(f"the folder {folder} cannot be used for slot files: {error.strerror}") from None


def write(path: Path, content: SlotContent, passphrase: str | None = None, limit_bytes: int | None = None) -> int:
    """Put the slot file in place, whole; returns its bytes. Raises `SlotError`, with everything as it was before."""
    data = encode(content)
    if passphrase is not None:
        data = encrypt(data, passphrase)
    if limit_bytes is not None and len(data) > limit_bytes:
        raise SlotError(f"the file would take {len(data)} bytes, above the limit of {limit_bytes}: raise the limit")
    try:
        _refuse_to_replace_others(path)
        _write_whole(path, data)
    except OSError as error:
        raise SlotWriteError(f"{path.name} cannot be written: {error.strerror}") from error
    return len(data)


def read(path: Path, passphrase: str | None = None) -> tuple[SlotContent, int]:
    """All of a slot file, verified, and its bytes. Raises `SlotFileError` with the reason."""
    data = read_bytes(path)
    try:
        return decode(_opened(data, passphrase)), len(data)
    except SlotFileError as error:
        raise SlotFileError(f"{path.name} is refused: {error}") from None


def read_bytes(path: Path, at_most: int | None = None) -> bytes:
    try:
        with _opened_regular(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
            return file.read(-1 if at_most is None else at_most)
    except OSError as error:
        raise SlotFileError(f"{path.name} cannot be read: {error.strerror}") from None


def is_ours(path: Path) -> bool:
    """Whether the beginning of this file says that it is a slot file, damaged further on or not."""
    try:
        start = read_bytes(path, at_most=MAX_HEADER_BYTES + 8)
        if not is_encrypted(start):
            read_metadata(start)
    except SlotFileError:
        return False
    return True


def left_overs(folder: Path) -> list[Path]:
    """Temporary files of writers that have ended before they could rename them."""
    found = [path for path in sorted(folder.iterdir()) if _LEFT_OVER.fullmatch(path.name)]
    return [path for path in found if _is_abandoned(path)]


def _opened(data: bytes, passphrase: str | None) -> bytes:
    if not is_encrypted(data):
        if passphrase is not None:
            raise SlotFileError("it is not encrypted, and a key is set: restore it without the key")
        return data
    if passphrase is None:
        raise SlotFileError("it is encrypted: name the environment variable that holds its key (--slot-key-env)")
    return decrypt(data, passphrase)


@contextlib.contextmanager
def _opened_regular(path: Path) -> Iterator[int]:
    """A descriptor of a regular file, no link: a pipe would make the reader wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_to_replace_others(path: Path) -> None:
    """A save may replace a slot file, or an empty file; what somebody else wrote is not ours to lose."""
    if not path.exists() and not path.is_symlink():
        return
    is_empty = path.is_file() and path.stat().st_size == 0
    if not is_empty and not is_ours(path):
        raise SlotError(f"{path.name} is there and is no slot file: give another name, or remove it first")


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.parent / f".minivllm-slot-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Make the new name last. The file is in place already: an error here loses nothing."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_abandoned(path: Path) -> bool:
    try:
        with _opened_regular(path) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except OSError:
        return False
