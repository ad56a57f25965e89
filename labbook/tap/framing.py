"""Where the body of a request ends (RFC 9112, 6 and 7), read as it arrives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from typing import Protocol

from labbook.errors import LabbookError
from labbook.tap.upstream import BLOCK_BYTES

_MAX_LINE_BYTES = 8192
_MAX_TRAILERS = 100
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")


class FramingError(LabbookError):
    """A request whose end cannot be found for certain: passing it on could hide a second request in it."""


class CutShortError(LabbookError):
    """The client went away before its request was complete."""


class Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...
    def readline(self, limit: int, /) -> bytes: ...


def is_chunked(headers: Message) -> bool:
    return headers.get("Transfer-Encoding") is not None


def request_blocks(headers: Message, stream: Readable) -> Iterator[bytes]:
    """The body's bytes, without the frames of chunks. Raises FramingError at once, CutShortError on the way."""
    lengths = {value.strip() for value in headers.get_all("Content-Length", [])}
    codings = [value.strip().lower() for value in headers.get_all("Transfer-Encoding", [])]
    if codings and (lengths or codings != ["chunked"]):
        raise FramingError("the request frames its body twice, or in a coding that is not chunked")
    if codings:
        return _chunks(stream)
    if not lengths:
        return iter(())
    (length, *others) = lengths
    if others or not re.fullmatch(r"[0-9]{1,15}", length):
        raise FramingError(f"the Content-Length {', '.join(sorted(lengths))!r} is no single number of bytes")
    return _exactly(int(length), stream)


def chunk(data: bytes) -> bytes:
    """The bytes as one chunk; no bytes are the last chunk, which ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _exactly(num_bytes: int, stream: Readable) -> Iterator[bytes]:
    while num_bytes:
        data = stream.read1(min(BLOCK_BYTES, num_bytes))
        if not data:
            raise CutShortError("the client left before its request was complete")
        num_bytes -= len(data)
        yield data


def _chunks(stream: Readable) -> Iterator[bytes]:
    while size := _chunk_size(stream):
        yield from _exactly(size, stream)
        if _line(stream).strip(b"\r\n"):
            raise FramingError("a chunk of the request is longer than it says")
    for _ in range(_MAX_TRAILERS):
        if not _line(stream).strip(b"\r\n"):
            return
    raise FramingError(f"the request has more than {_MAX_TRAILERS} trailers")


def _chunk_size(stream: Readable) -> int:
    line = _line(stream)
    found = _CHUNK_SIZE.fullmatch(line)
    if not found:
        raise FramingError(f"{line[:40]!r} is no size of a chunk")
    return int(found.group(1), 16)


def _line(stream: Readable) -> bytes:
    line = stream.readline(_MAX_LINE_BYTES)
    if not line:
        raise CutShortError("the client left before its request was complete")
    return line
