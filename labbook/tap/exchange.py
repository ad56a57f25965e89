"""One request and its answer as they passed the tap: bodies with the times at which their bytes came, and the end."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from labbook.record import now_iso

MAX_RECORDED_BYTES = 64 * 2**20

Headers = Sequence[tuple[str, str]]


class Recording:
    """The bytes of one body. All are counted and hashed; those beyond `max_bytes` are not kept."""

    def __init__(self, max_bytes: int = MAX_RECORDED_BYTES) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self.chunks: list[tuple[float, bytes]] = []
        self._hash = hashlib.sha256()

    def add(self, data: bytes) -> None:
        room = self.max_bytes - self.num_bytes
        if room > 0:
            self.chunks.append((time.perf_counter(), data[:room]))
        self.num_bytes += len(data)
        self._hash.update(data)

    @property
    def is_whole(self) -> bool:
        return self.num_bytes <= self.max_bytes

    @property
    def body(self) -> bytes:
        """The bytes that were kept."""
        return b"".join(data for _, data in self.chunks)

    def ends_with(self, words: bytes) -> bool:
        """Whether the last bytes, white space aside, are these."""
        tail = b"".join(data for _, data in self.chunks[-4:])
        return tail.rstrip().endswith(words)

    @property
    def sha256(self) -> str:
        """Of all bytes, kept or not."""
        return self._hash.hexdigest()


@dataclass
class Exchange:
    """`status` is None until the upstream has answered; `error` says why an exchange did not come to its end.

    `is_answered` is true as soon as the upstream has sent everything, which may be before the client has it.
    """

    number: int
    method: str
    target: str
    headers: Headers
    asked: Recording = field(default_factory=Recording)
    answered: Recording = field(default_factory=Recording)
    recorded_at: str = field(default_factory=now_iso)
    started_s: float = field(default_factory=time.perf_counter)
    ended_s: float = 0.0
    status: int | None = None
    answer_headers: Headers = ()
    error: str | None = None
    is_answered: bool = False

    def fail(self, why: str) -> None:
        """Note why it ended early; the first reason stands, since others follow from it."""
        self.error = self.error or why

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def header(headers: Headers, name: str) -> str | None:
    """The value of the first header with this name, in any case."""
    return next((value for one, value in headers if one.lower() == name), None)
