"""Lab 10, a solution: a digest over everything, a new file beside the old one, and its name at the very end."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


class SlotFileError(Exception):
    """A file that is not restored; the message says why."""


def pack(identity: Mapping[str, str], token_ids: list[int], payload: bytes) -> bytes:
    """Digest of all that follows, then a line of JSON, then the payload."""
    head = json.dumps({"identity": dict(identity), "token_ids": token_ids}).encode("utf-8")
    body = head + b"\n" + payload
    return hashlib.sha256(body).digest() + body


def save(path: Path, identity: Mapping[str, str], token_ids: list[int], payload: bytes) -> None:
    """Write one file; an older one at this place stays whole until the new one is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".saving-")  # made with mode 0600
    try:
        with open(handle, "wb") as file:
            file.write(pack(identity, token_ids, payload))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def restore(path: Path, identity: Mapping[str, str]) -> tuple[list[int], bytes]:
    """Exactly what was saved. Raises SlotFileError for all else: another identity, a damaged file, no such file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SlotFileError(f"the file cannot be read: {error.strerror}") from None
    digest, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != digest:
        raise SlotFileError("the file is damaged, or no slot file")
    head, _, payload = body.partition(b"\n")
    stored = json.loads(head)
    require_same(stored["identity"], dict(identity))
    return stored["token_ids"], payload


def require_same(stored: dict[str, str], here: dict[str, str]) -> None:
    for name in sorted(stored.keys() | here.keys()):
        if stored.get(name) != here.get(name):
            raise SlotFileError(f"{name} is {stored.get(name)} in the file and {here.get(name)} here")
