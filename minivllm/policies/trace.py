"""Public traces of real traffic: JSON lines without text, where equal block ids mean equal prefixes.

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48, ..., 2353]}

The format is that of the traces released with Mooncake (FAST '25): milliseconds, tokens, and one id for each block of
512 tokens, the last of which may be partial. An id stands for its block and all before it. Alibaba's traces (ATC '25)
have blocks of 16, and seconds: read them with `timestamp_unit_s=1.0`. Their README speaks of hashes of single blocks;
the designs compare sequences of ids from the first one on, so that either kind is counted right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from minivllm.policies.access import Access
from minivllm.policies.trace_line import MAX_TOKENS, TraceError, trace_lines

__all__ = ["Trace", "TraceError", "open_trace"]

PUBLIC_BLOCK_TOKENS = (512, 16)
LINES_TO_INFER_FROM = 1000


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace file, gzipped or not. Each iteration streams it from its start, one line in memory at a time.

    Raises TraceError at the first line that is no request, that does not have a block id for each `block_tokens` of
    its input, or that arrived before the line above it. Blank lines are passed over.
    """

    path: Path
    block_tokens: int
    timestamp_unit_s: float = 1e-3

    def __post_init__(self) -> None:
        if self.block_tokens < 1:
            raise ValueError(f"block_tokens is {self.block_tokens}: a block holds at least one token")
        if not (math.isfinite(self.timestamp_unit_s) and self.timestamp_unit_s > 0):
            raise ValueError(f"timestamp_unit_s is {self.timestamp_unit_s}: give seconds above 0, as 0.001")

    def __iter__(self) -> Iterator[Access]:
        return self.accesses()

    @property
    def num_bytes(self) -> int:
        """Size of the file as it lies there, the total that `on_bytes` counts up to."""
        return self.path.stat().st_size

    def accesses(self, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Access]:
        """One Access a line. `on_bytes` is told how many bytes of the file were consumed since it was last told."""
        last = 0.0
        for line in trace_lines(self.path, on_bytes):
            line.check_blocks(self.block_tokens)
            if line.timestamp < last:
                line.refuse(f"timestamp is {line.timestamp:g} after {last:g}: sort the trace by timestamp")
            last = line.timestamp
            yield Access(
                line.hash_ids,
                line.input_length,
                num_output_tokens=line.output_length,
                arrived_s=line.timestamp * self.timestamp_unit_s,
                unit_tokens=self.block_tokens,
            )


def open_trace(path: str | Path, block_tokens: int | None = None, timestamp_unit_s: float = 1e-3) -> Trace:
    """The trace at `path`; without `block_tokens`, its block size is inferred from its first thousand requests.

    Raises TraceError when there is no readable request, or when no block size, or more than one, fits them.
    """
    path = Path(path)
    if not path.is_file():
        raise TraceError(f"there is no trace file at {path}: name a file of JSON lines")
    if block_tokens is None:
        block_tokens = _inferred_block_tokens(path)
    return Trace(path, block_tokens, timestamp_unit_s)


def _inferred_block_tokens(path: Path) -> int:
    """The block size for which every line has one id for each started block: (n-1) * size < tokens <= n * size."""
    least, most = 0, MAX_TOKENS
    for line in islice(trace_lines(path), LINES_TO_INFER_FROM):
        num_blocks = len(line.hash_ids)
        if (num_blocks == 0) != (line.input_length == 0):
            line.refuse(f"input_length is {line.input_length}, and hash_ids has {num_blocks} blocks")
        if num_blocks:
            least = max(least, -(-line.input_length // num_blocks))
        if num_blocks > 1:
            most = min(most, (line.input_length - 1) // (num_blocks - 1))
        if least > most:
            line.refuse(f"{num_blocks} hash_ids for input_length {line.input_length} fit no block size of lines above")
    if not least:
        raise TraceError(f"{path} holds no request with input: each line is an object with timestamp and hash_ids")
    return _only_size(path, least, most)


def _only_size(path: Path, least: int, most: int) -> int:
    """A published block size when one fits, else a power of two, else the only number there is."""
    powers_of_two = [2**exponent for exponent in range(MAX_TOKENS.bit_length())]
    for sizes in (PUBLIC_BLOCK_TOKENS, powers_of_two, [least]):
        fitting = [size for size in sizes if least <= size <= most]
        if len(fitting) == 1 and (sizes != [least] or least == most):
            return fitting[0]
        if fitting:
            break
    raise TraceError(f"{path}: block sizes from {least} to {most} tokens fit its requests: give the block size")
