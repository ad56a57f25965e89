"""What the paged kernels read: a layer's keys and values, and page tables whose every id has been checked.

A kernel has no bounds of its own: a page id outside the pool would read other memory, or end the process. So ids are
checked here, in Python, where the tables are made, and a kernel takes nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minivllm.backend import mx


@dataclass(frozen=True, slots=True)
class PlainPages:
    """Keys and values [slots, kv_heads, head_dim]; slot = page id * page size + offset."""

    keys: mx.array
    values: mx.array

    def __post_init__(self) -> None:
        if self.keys.ndim != 3 or self.keys.shape != self.values.shape or self.keys.dtype != self.values.dtype:
            raise ValueError(
                f"keys {self.keys.dtype} {self.keys.shape} and values {self.values.dtype} {self.values.shape} are not "
                "two arrays of one dtype and one shape [slots, kv_heads, head_dim]"
            )

    @property
    def num_slots(self) -> int:
        return self.keys.shape[0]

    @property
    def num_kv_heads(self) -> int:
        return self.keys.shape[1]

    @property
    def head_dim(self) -> int:
        return self.keys.shape[2]

    @property
    def arrays(self) -> dict[str, mx.array]:
        return {"keys": self.keys, "values": self.values}

    @property
    def constants(self) -> dict[str, int]:
        return {}


@dataclass(frozen=True, slots=True)
class QuantizedPages:
    """Keys and values, each the triple of `mx.quantize(array [slots, kv_heads, head_dim], group_size, bits)`.

    The triple is: numbers packed into uint32 [slots, kv_heads, head_dim * bits / 32], lowest bits first; scales and
    biases [slots, kv_heads, head_dim / group_size]. An element is scale * number + bias.
    """

    keys: tuple[mx.array, mx.array, mx.array]
    values: tuple[mx.array, mx.array, mx.array]
    bits: int
    group_size: int

    def __post_init__(self) -> None:
        if self.bits not in (4, 8) or self.group_size not in (32, 64, 128):
            raise ValueError(f"bits={self.bits}, group_size={self.group_size}: bits are 4 or 8, groups 32, 64 or 128")
        packed, scales, biases = self.keys
        groups = (*packed.shape[:2], packed.shape[2] * 32 // self.bits / self.group_size)
        if packed.dtype != mx.uint32 or not scales.shape == biases.shape == groups:
            raise ValueError(
                f"keys of shapes {packed.shape}, {scales.shape}, {biases.shape} are not what "
                f"mx.quantize gives for bits={self.bits} and group_size={self.group_size}"
            )
        if [(a.shape, a.dtype) for a in self.keys] != [(a.shape, a.dtype) for a in self.values]:
            raise ValueError("keys and values are not quantized alike: their shapes or dtypes differ")

    @property
    def num_slots(self) -> int:
        return self.keys[0].shape[0]

    @property
    def num_kv_heads(self) -> int:
        return self.keys[0].shape[1]

    @property
    def head_dim(self) -> int:
        return self.keys[0].shape[2] * 32 // self.bits

    @property
    def arrays(self) -> dict[str, mx.array]:
        names = [f"{name}{part}" for name in ("key", "value") for part in ("s", "_scales", "_biases")]
        return dict(zip(names, (*self.keys, *self.values), strict=True))

    @property
    def constants(self) -> dict[str, int]:
        return {"BITS": self.bits, "QUANT_GROUP": self.group_size}


Pages = PlainPages | QuantizedPages


@dataclass(frozen=True, slots=True)
class PageTables:
    """Page tables of some sequences, and how many of their first tokens may be seen. IndexError on an id outside.

    `ids` is int32 [sequences, longest table], short tables filled up with page 0, which nobody reads; `lengths` is
    `num_tokens`, int32.
    """

    tables: Sequence[Sequence[int]]
    num_tokens: Sequence[int]
    num_pages: int
    page_size: int
    ids: mx.array = field(init=False)
    lengths: mx.array = field(init=False)

    def __post_init__(self) -> None:
        if len(self.tables) != len(self.num_tokens) or not self.tables:
            raise IndexError(f"{len(self.tables)} page tables for {len(self.num_tokens)} sequences: give one for each")
        needed = [-(-tokens // self.page_size) for tokens in self.num_tokens]
        ids = np.zeros((len(needed), max(needed)), np.int32)
        for row, table, count, tokens in zip(ids, self.tables, needed, self.num_tokens, strict=True):
            if not 1 <= tokens <= len(table) * self.page_size:
                raise IndexError(
                    f"{tokens} tokens in a page table of {len(table)} pages, which holds 1 to "
                    f"{len(table) * self.page_size}"
                )
            used = np.asarray(table[:count], np.int64)
            if used.min() < 0 or used.max() >= self.num_pages:
                raise IndexError(f"page table {list(table)} leaves the pool of {self.num_pages} pages")
            row[:count] = used
        object.__setattr__(self, "ids", mx.array(ids))
        object.__setattr__(self, "lengths", mx.array(np.array(self.num_tokens, np.int32)))

    @property
    def longest(self) -> int:
        """Pages of the longest context."""
        return self.ids.shape[1]
