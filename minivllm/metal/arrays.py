"""Between MLX arrays and the memory that a kernel sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minivllm.backend import mx
from minivllm.metal.errors import MetalRunnerError
from minivllm.metal.library import Buffer
from minivllm.metal.signature import KernelTexts, type_name


@dataclass(frozen=True, slots=True)
class InputArray:
    """An input as a kernel sees it: `strides` count elements; `start` is its first element's place in `data`."""

    dtype: mx.Dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: np.ndarray
    start: int

    @classmethod
    def of(cls, array: mx.array, *, is_row_contiguous: bool) -> InputArray:
        values = to_numpy(array)
        if is_row_contiguous:
            values = np.ascontiguousarray(values).reshape(values.shape)
        strides = tuple(step // values.itemsize for step in values.strides)
        low, high = _reach(values.shape, strides)
        whole = np.lib.stride_tricks.as_strided(
            _first_of(values, low), shape=(high - low,), strides=(values.itemsize,), writeable=False
        )
        return cls(array.dtype, values.shape, strides, whole, -low)

    def buffers(self, name: str, texts: KernelTexts) -> list[Buffer]:
        """The array and what the signature gives of its shape, in the order of the signature."""
        buffers = [Buffer(name, self.data, self.start)]
        if not self.shape:
            return buffers
        if texts.uses(f"{name}_shape"):
            buffers.append(Buffer(f"{name}_shape", np.array(self.shape, np.int32)))
        if texts.uses(f"{name}_strides"):
            buffers.append(Buffer(f"{name}_strides", np.array(self.strides, np.int64)))
        if texts.uses(f"{name}_ndim"):
            buffers.append(Buffer(f"{name}_ndim", np.array([len(self.shape)], np.int32)))
        return buffers


def as_array(value: mx.array | bool | int | float) -> mx.array:
    """Scalars become arrays without dimensions, as in MLX."""
    return value if isinstance(value, mx.array) else mx.array(value)


def to_numpy(array: mx.array) -> np.ndarray:
    """The array's own memory with its strides; NumPy has no bfloat16, whose bits come as uint16."""
    type_name(array.dtype)  # or an error that says what is wrong with it
    try:
        return np.array(_bits(array), copy=False)
    except ValueError as error:
        if "transformation" not in str(error):
            raise
        raise MetalRunnerError(
            "the runner executes a kernel at once, so it has no place in mx.compile or mx.vmap; call it outside of them"
        ) from error


def to_mlx(values: np.ndarray, dtype: mx.Dtype) -> mx.array:
    array = mx.array(values)
    return array.view(dtype) if dtype == mx.bfloat16 else array


def output_buffer(name: str, shape: Sequence[int], dtype: mx.Dtype, init_value: float | None) -> Buffer:
    """An output full of `init_value`, else of bytes that make NaN in every floating-point type."""
    type_name(dtype)
    kind = to_numpy(mx.zeros((1,), dtype)).dtype
    num_items = int(np.prod(shape, dtype=np.int64))
    if init_value is None:
        data = np.full(num_items * kind.itemsize, 0xFF, np.uint8).view(kind)
        return Buffer(name, data, is_output=True, is_initialised=False)
    data = np.full(num_items, to_numpy(mx.full((1,), init_value, dtype))[0], kind)
    return Buffer(name, data, is_output=True)


def _bits(array: mx.array) -> mx.array:
    return array.view(mx.uint16) if array.dtype == mx.bfloat16 else array


def _reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """The range of elements that the array touches, counted from its first one."""
    if 0 in shape:
        return 0, 0
    steps = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + 1


def _first_of(values: np.ndarray, low: int) -> np.ndarray:
    """A view that begins at the array's lowest address: reversed axes are turned round again."""
    if low == 0:
        return values
    return values[tuple(slice(None, None, -1 if step < 0 else 1) for step in values.strides)]
