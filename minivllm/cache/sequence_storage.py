"""Keys and values of one sequence, out of its pages and back into others, exactly as they are stored.

A tensor is named by its layer, keys or values, and its part: `layers.0.keys.full`, or `.packed`, `.scales`, `.biases`
of the tokens that are quantized. Of a sequence whose head stays in full precision there are both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.slot_errors import SlotFileError
from minivllm.cache.slot_file import Tensor
from minivllm.cache.storage import KVStorage, RegionedRows

FULL, QUANTIZED = ("full",), ("packed", "scales", "biases")
_NAMES = {mx.float32: "F32", mx.float16: "F16", mx.bfloat16: "BF16", mx.uint32: "U32"}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_WORDS = {"F32": np.uint32, "F16": np.uint16, "BF16": np.uint16, "U32": np.uint32}

Arrays = Mapping[str, mx.array]


def take_out(storage: KVStorage, page_table: Sequence[int], num_tokens: int) -> dict[str, mx.array]:
    """Copies, evaluated, of everything that is stored for these tokens."""
    arrays = {
        f"{name}.{part}": array
        for name, layer in _layers(storage)
        for parts, rows in _regions(storage, page_table, num_tokens)
        for part, array in zip(parts, layer.stored(mx.array(rows)), strict=True)
    }
    mx.eval(arrays)
    return arrays


def put_in(
    storage: KVStorage, page_table: Sequence[int], num_tokens: int, arrays: Arrays, first_token: int = 0
) -> None:
    """Write what `take_out` gave into the pages of this table, from `first_token` on: whoever shares a page may not
    change it. Evaluated when this returns.
    """
    num_full = _num_full_tokens(storage.kv_format, storage.page_size, num_tokens)
    for name, layer in _layers(storage):
        for parts, rows in _regions(storage, page_table, num_tokens):
            skipped = max(0, first_token - (0 if parts is FULL else num_full))
            if skipped < len(rows):
                layer.put(mx.array(rows[skipped:]), [arrays[f"{name}.{part}"][skipped:] for part in parts])
    mx.eval([layer.arrays for layer in storage.layers])


def shapes(storage: KVStorage, num_tokens: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of every tensor of a sequence of this length, as this storage keeps it."""
    num_full = _num_full_tokens(storage.kv_format, storage.page_size, num_tokens)
    expected = {}
    for name, layer in _layers(storage):
        for region, parts, rows in (
            (layer.full, FULL, num_full),
            (layer.quantized, QUANTIZED, num_tokens - num_full),
        ):
            if rows and region is not None:
                for part, array in zip(parts, region.arrays, strict=True):
                    expected[f"{name}.{part}"] = (_NAMES[array.dtype], (rows, *array.shape[1:]))
    return expected


def to_tensors(arrays: Arrays) -> dict[str, Tensor]:
    return {
        name: Tensor(_NAMES[array.dtype], tuple(array.shape), np.array(array.view(mx.uint8)).tobytes())
        for name, array in arrays.items()
    }


def to_arrays(
    tensors: Mapping[str, Tensor], expected: Mapping[str, tuple[str, tuple[int, ...]]]
) -> dict[str, mx.array]:
    """Evaluated arrays, independent of the tensors' bytes. Raises `SlotFileError` unless they are those expected."""
    if tensors.keys() != expected.keys():
        odd = sorted(tensors.keys() ^ expected.keys())[0]
        raise SlotFileError(
            f"its tensors are not those of this engine: {odd} is {'missing' if odd in expected else 'too many'}"
        )
    for name, tensor in tensors.items():
        if tensor.kind != expected[name] or len(tensor.data) != _num_bytes(tensor):
            raise SlotFileError(f"its tensor {name} is {tensor.kind}, this engine keeps {expected[name]}")
    arrays = {name: _array(tensor) for name, tensor in tensors.items()}
    mx.eval(arrays)
    finite = [mx.isfinite(array).all() for array in arrays.values() if array.dtype != mx.uint32]
    if not all(bool(one) for one in finite):
        raise SlotFileError("its keys and values are not all finite numbers")
    return arrays


def as_stored(array: mx.array, dtype: str) -> mx.array:
    """In a number format of this storage, which a tensor's type names."""
    return array.astype(_DTYPES[dtype])


def _num_bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * np.dtype(_WORDS[tensor.dtype]).itemsize


def _array(tensor: Tensor) -> mx.array:
    words = np.frombuffer(tensor.data, _WORDS[tensor.dtype]).reshape(tensor.shape)
    return mx.array(words).view(_DTYPES[tensor.dtype])


def _layers(storage: KVStorage) -> Iterator[tuple[str, RegionedRows]]:
    num_layers = len(storage.layers) // 2
    for number, layer in enumerate(storage.layers):
        yield f"layers.{number % num_layers}.{'keys' if number < num_layers else 'values'}", layer


def _regions(
    storage: KVStorage, page_table: Sequence[int], num_tokens: int
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The parts that are stored and the rows they are at: of the head, then of the rest."""
    rows = storage.rows_of(page_table, num_tokens)
    num_full = _num_full_tokens(storage.kv_format, storage.page_size, num_tokens)
    for parts, chosen in ((FULL, rows[:num_full]), (QUANTIZED, rows[num_full:])):
        if len(chosen):
            yield parts, chosen


def _num_full_tokens(kv_format: KVFormat, page_size: int, num_tokens: int) -> int:
    return num_tokens if kv_format.bits is None else min(num_tokens, kv_format.head_pages * page_size)
