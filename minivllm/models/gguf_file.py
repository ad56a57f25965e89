"""Read the header of a `.gguf` file: metadata, and what tensors it holds.

Format: github.com/ggml-org/ggml, docs/gguf.md. The header is read here and not by MLX, because MLX reads past
the end of a truncated file and turns types that it does not know into others; both are refused first.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from minivllm.models.errors import ModelError

_DEFAULT_ALIGNMENT_BYTES = 32
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9

# Tensor types that MLX reads as they are: name, values per block, bytes per block.
_READABLE = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    8: ("Q8_0", 32, 34),
    30: ("BF16", 1, 2),
}
_OTHER_TYPES = {
    6: "Q5_0",
    7: "Q5_1",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    15: "Q8_K",
}


@dataclass(frozen=True)
class GgufTensor:
    """`shape` is in MLX's order: rows first, the contiguous axis last."""

    name: str
    type_name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class GgufHeader:
    metadata: dict[str, Any]
    tensors: tuple[GgufTensor, ...]


def read_header(path: Path) -> GgufHeader:
    """The header of `path`; ModelError if it is not GGUF, is truncated, or holds types MLX cannot read."""
    with open(path, "rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ModelError(f"{path} is not a GGUF file: it does not begin with 'GGUF'")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(path, data).header()
            except (struct.error, UnicodeDecodeError, IndexError) as error:
                raise ModelError(f"{path} is damaged or truncated in its header; fetch it again") from error


class _Reader:
    """A cursor over the mapped file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.position = 4

    def header(self) -> GgufHeader:
        version = self.scalar("<I")
        if version not in (2, 3):
            raise ModelError(f"{self.path} is GGUF version {version}; only 2 and 3 are supported")
        num_tensors, num_fields = self.scalar("<Q"), self.scalar("<Q")
        metadata = {}
        for _ in range(num_fields):
            key = self.string()
            metadata[key] = self.value(self.scalar("<I"))
        tensors, end = [], 0
        for _ in range(num_tensors):
            tensor, tensor_end = self.tensor()
            tensors.append(tensor)
            end = max(end, tensor_end)
        alignment = int(metadata.get("general.alignment", _DEFAULT_ALIGNMENT_BYTES))
        expected_bytes = -(-self.position // alignment) * alignment + end
        if len(self.data) < expected_bytes:
            raise ModelError(
                f"{self.path} is truncated: its header describes {expected_bytes} bytes, "
                f"it has {len(self.data)}; fetch it again"
            )
        return GgufHeader(metadata, tuple(tensors))

    def tensor(self) -> tuple[GgufTensor, int]:
        """The next tensor's description, and where it ends in the data section, in bytes."""
        name = self.string()
        shape = tuple(self.scalar("<Q") for _ in range(self.scalar("<I")))[::-1]
        type_id, offset = self.scalar("<I"), self.scalar("<Q")
        if type_id not in _READABLE:
            type_name = _OTHER_TYPES.get(type_id, f"number {type_id}")
            supported = ", ".join(known for known, _, _ in _READABLE.values())
            raise ModelError(
                f"{self.path}: tensor {name} has type {type_name}, which is not supported; "
                f"use a file with only {supported}"
            )
        type_name, block_values, block_bytes = _READABLE[type_id]
        return GgufTensor(name, type_name, shape), offset + prod(shape) // block_values * block_bytes

    def value(self, type_id: int) -> Any:
        if type_id == _STRING:
            return self.string()
        if type_id == _ARRAY:
            item_type, length = self.scalar("<I"), self.scalar("<Q")
            return [self.value(item_type) for _ in range(length)]
        if type_id not in _SCALARS:
            raise ModelError(f"{self.path} is damaged: unknown metadata type {type_id}; fetch it again")
        return self.scalar(_SCALARS[type_id])

    def string(self) -> str:
        num_bytes = self.scalar("<Q")
        text = self.data[self.position : self.position + num_bytes]
        if len(text) < num_bytes:
            raise IndexError(self.position)
        self.position += num_bytes
        return text.decode()

    def scalar(self, layout: str) -> Any:
        (value,) = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return value
