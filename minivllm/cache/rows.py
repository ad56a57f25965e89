"""Rows of one array of keys or values, in full precision or quantized: [rows, num_kv_heads, head_dim].

The last row is the null row: all zeros, read by padding and never written. `array[rows] = values` happens in place
only while the buffer has a single owner, so each array is one attribute of one object.
"""

from __future__ import annotations

from collections.abc import Sequence

from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat

DTYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


class FullRows:
    """One number per element."""

    def __init__(self, num_rows: int, num_kv_heads: int, head_dim: int, kv_format: KVFormat) -> None:
        self.array = mx.zeros((num_rows + 1, num_kv_heads, head_dim), DTYPES[kv_format.dtype])

    @property
    def arrays(self) -> list[mx.array]:
        return [self.array]

    def write(self, rows: mx.array, values: mx.array) -> None:
        """Store values [n, num_kv_heads, head_dim] at `rows` [n], in place."""
        self.array[rows] = values.astype(self.array.dtype)

    def read(self, rows: mx.array) -> mx.array:
        """Values at `rows` [...]: [..., num_kv_heads, head_dim]."""
        return self.array[rows]

    def put(self, rows: mx.array, arrays: Sequence[mx.array]) -> None:
        """Store at `rows` what `arrays` of other rows held, as it was stored there."""
        (self.array[rows],) = arrays

    def poison(self, rows: mx.array) -> None:
        """Overwrite rows so that whoever reads them gets NaN."""
        self.array[rows] = mx.array(float("nan"), self.array.dtype)


class QuantizedRows:
    """`packed` holds 32 / bits elements in each uint32; `scales` and `biases` one number per group."""

    def __init__(self, num_rows: int, num_kv_heads: int, head_dim: int, kv_format: KVFormat) -> None:
        assert kv_format.bits is not None and kv_format.group_size is not None
        self._bits, self._group_size = kv_format.bits, kv_format.group_size
        per_head = (num_rows + 1, num_kv_heads)
        self.packed = mx.zeros((*per_head, head_dim * self._bits // 32), mx.uint32)
        self.scales = mx.zeros((*per_head, head_dim // self._group_size), DTYPES[kv_format.dtype])
        self.biases = mx.zeros((*per_head, head_dim // self._group_size), DTYPES[kv_format.dtype])

    @property
    def triple(self) -> tuple[mx.array, mx.array, mx.array]:
        """As `mx.quantize` gives them."""
        return self.packed, self.scales, self.biases

    @property
    def arrays(self) -> list[mx.array]:
        return list(self.triple)

    def write(self, rows: mx.array, values: mx.array) -> None:
        values = values.astype(self.scales.dtype)
        packed, scales, biases = mx.quantize(values, self._group_size, self._bits)
        self.packed[rows] = packed
        self.scales[rows] = scales + _nan_where_not_finite(values, self._group_size)
        self.biases[rows] = biases

    def read(self, rows: mx.array) -> mx.array:
        return mx.dequantize(self.packed[rows], self.scales[rows], self.biases[rows], self._group_size, self._bits)

    def put(self, rows: mx.array, arrays: Sequence[mx.array]) -> None:
        self.packed[rows], self.scales[rows], self.biases[rows] = arrays

    def poison(self, rows: mx.array) -> None:
        self.scales[rows] = mx.array(float("nan"), self.scales.dtype)


def _nan_where_not_finite(values: mx.array, group_size: int) -> mx.array:
    """0 for each group of numbers, NaN for one that holds an infinity or NaN.

    `mx.quantize` takes the extremes of a group by comparison, so it overlooks a NaN and stores plausible numbers.
    """
    groups = values.reshape(*values.shape[:-1], -1, group_size)
    return (groups * 0).sum(axis=-1)
