"""Recorded bodies as text, decompressed for the record; what passes the tap stays as it is."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from labbook.tap.exchange import MAX_RECORDED_BYTES, Headers, Recording, header

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}

TimedBytes = list[tuple[float, bytes]]


class UnreadableError(Exception):
    """A body that is no text here; the message says why."""


def decoded(recording: Recording, headers: Headers) -> TimedBytes:
    """The body's bytes, decompressed, with the times they came at. Raises UnreadableError."""
    if not recording.is_whole:
        raise UnreadableError(f"longer than {recording.max_bytes / 2**20:g} MiB, of {recording.num_bytes} bytes")
    coding = (header(headers, "content-encoding") or "identity").strip().lower()
    if coding in ("identity", ""):
        return recording.chunks
    if coding not in _WINDOW_BITS:
        raise UnreadableError(f"compressed with {coding[:20]}, which the tap does not read")
    try:
        return list(_inflated(recording.chunks, _WINDOW_BITS[coding]))
    except zlib.error:
        raise UnreadableError(f"not the {coding} that it says it is") from None


def text(chunks: TimedBytes) -> str:
    """The chunks as one UTF-8 text. Raises UnreadableError."""
    try:
        return b"".join(data for _, data in chunks).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8 text at byte {error.start}") from None


def _inflated(chunks: TimedBytes, window_bits: int) -> Iterable[tuple[float, bytes]]:
    inflater = zlib.decompressobj(window_bits)
    room = MAX_RECORDED_BYTES  # a small answer can unpack to more than memory holds
    for at_s, data in chunks:
        plain = inflater.decompress(data, room)
        if inflater.unconsumed_tail:
            raise UnreadableError(f"longer than {MAX_RECORDED_BYTES / 2**20:g} MiB when decompressed")
        room = max(1, room - len(plain))
        yield at_s, plain
