"""MINIVLLM_HOME: the one folder outside the checkout that this package writes to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from minivllm.models.errors import ModelError

_CACHE_VERSION = 1


class HomeError(OSError, ModelError):
    """The folder cannot be found, made or written. An `OSError` for those who can do without it."""


def home() -> Path:
    """`$MINIVLLM_HOME`, else `minivllm` in the user's cache directory; made when it is first written to."""
    chosen = os.environ.get("MINIVLLM_HOME")
    if chosen:
        return _expanded(chosen).absolute()
    if sys.platform == "darwin":
        return _user_folder() / "Library" / "Caches" / "minivllm"
    return Path(os.environ.get("XDG_CACHE_HOME") or _user_folder() / ".cache") / "minivllm"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file beside `path`; other processes wait. It ends with the process, however that ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.parent / f".{path.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder_made_once(final: Path, fill: Callable[[Path], None]) -> Path:
    """`final`, made by `fill(temporary folder)` unless it is there; a reader never sees half of it.

    Raises `HomeError` when its parent cannot be made or written, and whatever `fill` raises.
    """
    if final.is_dir():
        return final
    _require_writable(final.parent)
    with locked(final):
        if final.is_dir():  # another process made it while this one waited
            return final
        for left_over in final.parent.glob(f".{final.name}.*.part"):  # of a process that was killed: we hold the lock
            shutil.rmtree(left_over, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix=f".{final.name}.", suffix=".part", dir=final.parent))
        try:
            fill(part)
            part.chmod(0o755)
            part.rename(final)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return final


def remembered(name: str, key: str, compute: Callable[[], Any], keep: Callable[[Any], bool] = lambda _: True) -> Any:
    """`compute()`'s JSON value, kept in `<home>/<name>.json` under `key` if `keep(value)`.

    A home that cannot be written only costs time.
    """
    path = home() / f"{name}.json"
    known = _read_cache(path)
    if key in known:
        return known[key]
    value = compute()
    if not keep(value):
        return value
    with contextlib.suppress(OSError), locked(path):
        _write_cache(path, {**_read_cache(path), key: value})
    return value


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _expanded(chosen: str) -> Path:
    first, *rest = Path(chosen).parts
    if first == "~":
        return _user_folder().joinpath(*rest)
    try:
        return Path(chosen).expanduser()
    except RuntimeError:
        message = f"MINIVLLM_HOME={chosen} names a user that this machine does not know; give a whole path"
        raise HomeError(message) from None


def _user_folder() -> Path:
    """The user's own folder. `Path.home()` takes an empty HOME for the root of the file system."""
    if os.environ.get("HOME"):
        return Path.home()
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise HomeError("HOME is unset and this user has no folder; set MINIVLLM_HOME to one") from None


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise HomeError(f"{folder} cannot be written ({reason}); set MINIVLLM_HOME to a folder that can") from error


def _read_cache(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text())
        return dict(stored["values"]) if stored["version"] == _CACHE_VERSION else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write_cache(path: Path, values: dict[str, Any]) -> None:
    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with open(handle, "w") as stream:
        json.dump({"version": _CACHE_VERSION, "values": values}, stream, indent=1)
    os.replace(part, path)
