"""Executes a Metal kernel on the CPU, called exactly like `mx.fast.metal_kernel`.

For tests, notebooks and labs on machines without an Apple GPU: slow, and strict. What it promises and what it does
not stands in minivllm/metal/README.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from minivllm.backend import mx
from minivllm.metal.address_spaces import check_address_spaces
from minivllm.metal.arrays import InputArray, as_array, output_buffer, to_mlx
from minivllm.metal.compiler import find_compiler, kernel_library
from minivllm.metal.errors import KernelCompileError, KernelNameReused, MetalRunnerError
from minivllm.metal.launch import Shape, execute
from minivllm.metal.library import runtime
from minivllm.metal.options import Options, options, options_now
from minivllm.metal.report import Reporter
from minivllm.metal.rewriter import kernel_unit
from minivllm.metal.signature import KernelTexts, Signature, TemplateValue, make_signature

__all__ = ["MetalKernel", "Options", "metal_kernel", "options"]

_MATH_MODES = ("safe", "relaxed", "fast")


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
        now = options_now(self._made_with)
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
        results = execute(Reporter(self._texts, library, buffers), shape, now)
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
