"""Writing traffic as a trace of the public format (trace.py): no text leaves, only which prefixes are equal."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from minivllm.policies.access import Access

_Key = tuple[object, tuple[int, ...]]


class BlockNumbers:
    """Numbers blocks in the order of their first appearance, as the public traces do: one for each distinct prefix.

    A block is keyed by its parent's number and its own tokens, so equal numbers mean equal prefixes. A partial last
    block has a number of its own. Memory grows with the distinct blocks; only the reader can do without.
    """

    def __init__(self, block_tokens: int) -> None:
        if block_tokens < 1:
            raise ValueError(f"block_tokens is {block_tokens}: a block holds at least one token")
        self.block_tokens = block_tokens
        self._number_by_key: dict[_Key, int] = {}

    def of(self, access: Access) -> list[int]:
        """The block ids of a prompt of tokens. Nothing is equal under two salts."""
        if access.unit_tokens != 1:
            raise ValueError(f"the access has units of {access.unit_tokens} tokens: blocks are made from single tokens")
        parent: object = ("salt", access.salt)
        numbers = []
        for start in range(0, len(access.unit_ids), self.block_tokens):
            key = (parent, access.unit_ids[start : start + self.block_tokens])
            parent = self._number_by_key.setdefault(key, len(self._number_by_key))
            numbers.append(self._number_by_key[key])
        return numbers


def write_trace(path: str | Path, accesses: Iterable[Access], block_tokens: int = 16) -> int:
    """Write the traffic to `path`, gzipped when its name ends in .gz, and return how many requests that were.

    Sessions and the tokens of answers are lost: the format has no place for them.
    """
    numbers = BlockNumbers(block_tokens)
    num_requests = 0
    with _opened(Path(path)) as file:
        for access in accesses:
            file.write(json.dumps(_line(access, numbers)).encode("utf-8") + b"\n")
            num_requests += 1
    return num_requests


def _line(access: Access, numbers: BlockNumbers) -> dict[str, Any]:
    return {
        "timestamp": round(1000 * access.arrived_s),
        "input_length": access.num_input_tokens,
        "output_length": access.num_output_tokens,
        "hash_ids": numbers.of(access),
    }


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with open(path, "wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:  # no name, no time: equal bytes
            yield packed  # type: ignore[misc]
