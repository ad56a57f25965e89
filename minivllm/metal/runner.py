"""Executes a Metal kernel on the CPU, called exactly like `mx.fast.metal_kernel`.

For tests, notebooks and labs on machines without an Apple GPU: slow, and strict. What it promises and what it does
not stands in minivllm/metal/README.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from minivllm.backend import mx
from minivllm.metal.address_spaces import check_address_spaces
from minivllm.metal.arrays import InputArray, as_array, output_buffer, to_mlx
from minivllm.metal.compiler import find_compiler, kernel_library
from minivllm.metal.errors import KernelCompileError, KernelNameReused, MetalRunnerError
from minivllm.metal.library import Buffer, Launch, Report, entry_of, launch_lock, runtime
from minivllm.metal.report import KINDS, Reporter
from minivllm.metal.rewriter import kernel_unit
from minivllm.metal.signature import KernelTexts, Signature, TemplateValue, make_signature

MAX_THREADS_PER_THREADGROUP = 1024
CHECK_VARIABLE = "MINIVLLM_METAL_CHECK"
_ORDERS = ("forward", "reverse", "random")
_MATH_MODES = ("safe", "relaxed", "fast")


@dataclass(frozen=True, slots=True)
class Options:
    """How the runner executes kernels.

    `check` finds races, exact bounds, uninitialised reads and unwritten outputs, at a few times the cost. `order` is
    the one in which threads take their turns, "random" by `seed`. `stray_reads="zero"` lets reads beside a buffer
    give zeros. `threadgroup_bytes` is what a threadgroup may reserve (Apple's GPUs have 32 KiB).
    """

    check: bool = True
    order: Literal["forward", "reverse", "random"] = "forward"
    seed: int = 0
    stray_reads: Literal["error", "zero"] = "error"
    timeout_s: float = 60.0
    threadgroup_bytes: int = 32 * 1024

    def __post_init__(self) -> None:
        if self.order not in _ORDERS:
            raise ValueError(f"order is one of {', '.join(_ORDERS)}, not {self.order!r}")
        if self.stray_reads not in ("error", "zero"):
            raise ValueError(f'stray_reads is "error" or "zero", not {self.stray_reads!r}')
        if self.timeout_s <= 0 or self.threadgroup_bytes <= 0:
            raise ValueError("timeout_s and threadgroup_bytes are larger than 0")


_chosen: ContextVar[Options | None] = ContextVar("options", default=None)


@contextlib.contextmanager
def options(chosen: Options) -> Iterator[None]:
    """Every kernel called within takes these options, whatever it was made with."""
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def default_options() -> Options:
    """Checks are on unless MINIVLLM_METAL_CHECK=0."""
    return Options(check=os.environ.get(CHECK_VARIABLE, "1") != "0")


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch: threads of the whole grid and of one threadgroup."""

    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]

    @classmethod
    def of(cls, grid: Sequence[int], threadgroup: Sequence[int]) -> Shape:
        for name, triple in (("grid", grid), ("threadgroup", threadgroup)):
            if len(triple) != 3 or any(int(length) < 0 for length in triple):
                raise ValueError(f"{name} is three numbers of threads, not {tuple(triple)}")
        gx, gy, gz = (int(length) for length in grid)
        tx, ty, tz = (int(length) for length in threadgroup)
        if tx * ty * tz > MAX_THREADS_PER_THREADGROUP:
            raise ValueError(
                f"Thread group size ({tx * ty * tz}) is greater than the maximum allowed threads per threadgroup "
                f"({MAX_THREADS_PER_THREADGROUP})."
            )
        if tx * ty * tz == 0:
            raise ValueError(f"a threadgroup of {(tx, ty, tz)} has no threads")
        return cls((gx, gy, gz), (max(1, min(tx, gx)), max(1, min(ty, gy)), max(1, min(tz, gz))))


class MetalKernel:
    """What `metal_kernel` returns; see there."""

    def __init__(self, texts: KernelTexts, ensure_row_contiguous: bool, made_with: Options | None) -> None:
        self._texts = texts
        self._ensure_row_contiguous = ensure_row_contiguous
        self._made_with = made_with
        self._libraries: dict[tuple[str, bool], Path] = {}

    def __call__(
        self,
        *,
        inputs: Sequence[mx.array | bool | int | float],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[mx.Dtype],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, TemplateValue]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: object | None = None,
    ) -> list[mx.array]:
        """Run every thread of `grid` and return the outputs, as `mx.fast.metal_kernel(...)(...)` does.

        Raises `KernelCompileError` for a text that is no kernel, `KernelFault` for what a thread must not do.
        """
        self._require_lengths(inputs, output_shapes, output_dtypes)
        now = _chosen.get() or self._made_with or default_options()
        shape = Shape.of(grid, threadgroup)
        sources = [as_array(value) for value in inputs]
        arrays = [InputArray.of(array, is_row_contiguous=self._ensure_row_contiguous) for array in sources]
        library = self._library(arrays, output_dtypes, template or (), now, verbose)
        outputs = [
            output_buffer(name, output_shape, dtype, init_value)
            for name, output_shape, dtype in zip(self._texts.output_names, output_shapes, output_dtypes, strict=True)
        ]
        buffers = [
            *(
                buffer
                for name, array in zip(self._texts.input_names, arrays, strict=True)
                for buffer in array.buffers(name, self._texts)
            ),
            *outputs,
        ]
        results = _execute(Reporter(self._texts, library, buffers), shape, now)
        return _without_gradients(
            sources,
            [
                to_mlx(values.reshape(tuple(output_shape)), dtype)
                for values, output_shape, dtype in zip(results, output_shapes, output_dtypes, strict=True)
            ],
        )

    def _require_lengths(
        self, inputs: Sequence[object], output_shapes: Sequence[object], output_dtypes: Sequence[object]
    ) -> None:
        for name, values, names in (
            ("inputs", inputs, self._texts.input_names),
            ("output_shapes", output_shapes, self._texts.output_names),
            ("output_dtypes", output_dtypes, self._texts.output_names),
        ):
            if len(values) != len(names):
                raise ValueError(
                    f"[metal_kernel] Expected `{name}` to have size {len(names)} but got size {len(values)}."
                )

    def _library(
        self,
        arrays: Sequence[InputArray],
        output_dtypes: Sequence[mx.Dtype],
        template: Sequence[tuple[str, TemplateValue]],
        now: Options,
        verbose: bool,
    ) -> Path:
        _require_template(template)
        kinds = [(array.dtype, array.shape) for array in arrays]
        signature = make_signature(self._texts, kinds, output_dtypes, template)
        text = signature.text(self._texts)
        if verbose:
            print(f"Generated source code for `{self._texts.name}`:\n```\n{text}\n```")
        _note_name(signature.function_name, text)
        key = (text, now.check)
        if key not in self._libraries:
            self._libraries[key] = _compile(self._texts, signature, is_checked=now.check)
        return self._libraries[key]


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, str] | None = None,
    *,
    runner_options: Options | None = None,
) -> MetalKernel:
    """A kernel for the runner, with the arguments of `mx.fast.metal_kernel` and `runner_options`.

    `compile_options` is checked and has no effect: floating-point arithmetic here is always "safe".
    """
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"name={name!r} becomes part of a function's name; use letters, digits and underscores")
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    for option, value in (compile_options or {}).items():
        if option != "math_mode":
            raise ValueError(f"[metal_kernel] Unknown compile option `{option}`.")
        if value not in _MATH_MODES:
            raise ValueError("[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'.")
    texts = KernelTexts(name, tuple(input_names), tuple(output_names), source, header, atomic_outputs)
    return MetalKernel(texts, ensure_row_contiguous, runner_options)


_texts_by_name: dict[str, str] = {}


def _note_name(function_name: str, text: str) -> None:
    known = _texts_by_name.setdefault(function_name, text)
    if known == text:
        return
    _texts_by_name[function_name] = text
    warnings.warn(
        f"`{function_name}` had another text before. MLX looks kernels up by this name alone: when both wait for one "
        "evaluation, one of them runs the other's code. Put whatever the text depends on into `name`",
        KernelNameReused,
        stacklevel=4,
    )


def _require_template(template: Sequence[tuple[str, TemplateValue]]) -> None:
    for _, value in template:
        is_number = isinstance(value, int) and -(2**31) <= value < 2**31
        if not is_number and not isinstance(value, mx.Dtype):
            raise ValueError("[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`.")


def _compile(texts: KernelTexts, signature: Signature, *, is_checked: bool) -> Path:
    runtime()  # the kernel's library needs its functions
    try:
        signature.require_well_formed()
        library = kernel_library(find_compiler(), kernel_unit(texts, signature), is_checked=is_checked)
        check_address_spaces(texts, signature)
    except KernelCompileError as error:
        raise type(error)(f"kernel `{texts.name}` does not compile:\n{error}") from None
    return library


def _execute(reporter: Reporter, shape: Shape, now: Options) -> list[np.ndarray]:
    """The outputs after every thread has run."""
    buffers = reporter.buffers
    outputs = [(i, buffer) for i, buffer in enumerate(buffers) if buffer.is_output]
    with launch_lock:
        try:
            runtime().place(buffers, is_checked=now.check, allows_stray_reads=now.stray_reads == "zero")
            if all(shape.grid):
                _launch(reporter, shape, now)
            if now.check:
                _require_written(reporter, outputs)
            return [runtime().fetch(i, buffer) for i, buffer in outputs]
        finally:
            runtime().close()


def _launch(reporter: Reporter, shape: Shape, now: Options) -> None:
    launch = Launch(
        entry=entry_of(reporter.library),
        grid=shape.grid,
        threadgroup=shape.threadgroup,
        order=_ORDERS.index(now.order),
        is_checked=now.check,
        allows_stray_reads=now.stray_reads == "zero",
        num_arena_bytes=now.threadgroup_bytes,
        seed=now.seed,
        timeout_s=now.timeout_s,
    )
    report: Report = runtime().run(launch, reporter.buffers)
    if KINDS[report.kind] == "interrupted":
        raise KeyboardInterrupt
    if report.kind:
        raise reporter.fault(report)


def _require_written(reporter: Reporter, outputs: Sequence[tuple[int, Buffer]]) -> None:
    for i, buffer in outputs:
        num_unwritten, first = runtime().unwritten(i)
        if num_unwritten and not buffer.is_initialised:
            raise reporter.unwritten(buffer, num_unwritten, first)


def _without_gradients(inputs: Sequence[mx.array], outputs: Sequence[mx.array]) -> list[mx.array]:
    """`outputs`, through which no gradient flows silently as zero: like MLX's kernels, they have none."""
    num_inputs = len(inputs)

    @mx.custom_function
    def end_of_gradients(*arrays: mx.array) -> list[mx.array]:
        return list(arrays[num_inputs:])

    @end_of_gradients.vjp
    def refuse(*_: object) -> None:
        raise MetalRunnerError(
            "a Metal kernel has no gradient of its own; wrap it in mx.custom_function and give that one a vjp"
        )

    with_end: list[mx.array] = end_of_gradients(*inputs, *outputs)  # type: ignore[assignment]
    return list(with_end)
