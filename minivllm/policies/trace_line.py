"""One line of a public trace, read and judged on its own."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

MAX_LINE_BYTES = 16 * 2**20
MAX_TOKENS = 2**31

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNREADABLE = (OSError, EOFError, zlib.error)


class TraceError(ValueError):
    """A trace that cannot be read; the message names the file, the line and the value."""


@dataclass(frozen=True, slots=True)
class TraceLine:
    """The values of one line, each of the right kind, not yet compared with each other or with other lines."""

    path: Path
    number: int
    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]

    def check_blocks(self, block_tokens: int) -> None:
        num_blocks = -(-self.input_length // block_tokens)
        if len(self.hash_ids) != num_blocks:
            self.refuse(
                f"input_length {self.input_length} makes {num_blocks} blocks of {block_tokens} tokens, "
                f"and hash_ids has {len(self.hash_ids)}: is it another block size?"
            )

    def refuse(self, why: str) -> NoReturn:
        raise TraceError(f"{self.path}, line {self.number}: {why}")


def trace_lines(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[TraceLine]:
    """The lines that are not blank, one in memory at a time. `on_bytes` is told what was consumed since the last."""
    number = 0
    try:
        with open(path, "rb") as file:
            is_gzip = file.peek(2)[:2] == _GZIP_MAGIC
            source = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_gzip else file
            consumed = 0
            while raw := source.readline(MAX_LINE_BYTES + 1):
                number += 1
                on_bytes(file.tell() - consumed)
                consumed = file.tell()
                raw = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
                if raw.strip() or len(raw) > MAX_LINE_BYTES:
                    yield _parsed(path, number, raw)
    except _UNREADABLE as error:
        raise TraceError(f"{path} cannot be read after line {number}: {error}") from None


def _parsed(path: Path, number: int, raw: bytes) -> TraceLine:
    try:
        if len(raw) > MAX_LINE_BYTES:
            raise ValueError(f"it is longer than {MAX_LINE_BYTES} bytes")
        values = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
        if not isinstance(values, dict):
            raise ValueError(f"a JSON {type(values).__name__} is no request: an object is")
        return TraceLine(
            path,
            number,
            _timestamp(_value(values, "timestamp")),
            _tokens(values, "input_length"),
            _tokens(values, "output_length"),
            _block_ids(_value(values, "hash_ids")),
        )
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}, line {number}: {error}") from None


def _value(values: dict[str, Any], name: str) -> Any:
    if name not in values:
        raise ValueError(f"{name} is missing; the line has {', '.join(values) or 'nothing'}"[:300])
    return values[name]


def _timestamp(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 2**63:  # NaN and infinities compare as outside
        raise ValueError(f"timestamp is {value!r:.80}: a number from 0 is needed")
    return float(value)


def _tokens(values: dict[str, Any], name: str) -> int:
    value = _value(values, name)
    if type(value) is not int or not 0 <= value <= MAX_TOKENS:  # bool is an int, and no number of tokens
        raise ValueError(f"{name} is {value!r:.80}: a whole number of tokens from 0 to {MAX_TOKENS} is needed")
    return value


def _block_ids(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError(f"hash_ids is {value!r:.80}: a list of block ids is needed")
    for block_id in value:
        if type(block_id) is not int:
            raise ValueError(f"hash_ids holds {block_id!r:.80}: block ids are whole numbers")
    return tuple(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
