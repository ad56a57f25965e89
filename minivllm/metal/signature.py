"""The text that `mx.fast.metal_kernel` generates around the body of a kernel, to the letter.

Checked against MLX 0.32 itself, which prints its text on any machine (tests/metal/test_runner_signature.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from minivllm.backend import mx
from minivllm.metal.errors import KernelCompileError

TemplateValue = bool | int | mx.Dtype

# An input with fewer elements is passed in constant memory.
_CONSTANT_BELOW = 8
_TYPE_NAMES = {
    mx.bool_: "bool",
    mx.uint8: "uint8_t",
    mx.uint16: "uint16_t",
    mx.uint32: "uint32_t",
    mx.uint64: "uint64_t",
    mx.int8: "int8_t",
    mx.int16: "int16_t",
    mx.int32: "int32_t",
    mx.int64: "int64_t",
    mx.float16: "float16_t",
    mx.bfloat16: "bfloat16_t",
    mx.float32: "float",
    mx.complex64: "complex64_t",
}
# In the order in which MLX lists them. A thread attribute is a parameter when its name occurs in the source.
THREAD_ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """What the author of a kernel wrote, as given to `metal_kernel`."""

    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    source: str
    header: str
    atomic_outputs: bool

    def uses(self, name: str) -> bool:
        """As MLX decides: the name occurs anywhere in the source, be it in a comment or inside a longer name."""
        return name in self.source


@dataclass(frozen=True, slots=True)
class Parameter:
    """One buffer of the signature."""

    declaration: str
    name: str
    cpp_type: str
    is_reference: bool = False
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """One specialisation of a kernel: `text` is MLX's, between `header` and `end` of it stands the source."""

    function_name: str
    specialisation: str
    parameters: tuple[Parameter, ...]
    attributes: tuple[str, ...]
    before_source: str
    after_source: str

    def text(self, texts: KernelTexts) -> str:
        return f"{texts.header}{self.before_source}{texts.source}{self.after_source}"

    def require_well_formed(self) -> None:
        if self.before_source.count(") {\n") > 1:
            raise KernelCompileError(
                "MLX generates a broken signature for a kernel with several outputs that uses an input's shape and no "
                "thread attribute; name an attribute in `source`, such as thread_position_in_grid (a comment will do)"
            )


def type_name(dtype: mx.Dtype) -> str:
    try:
        return _TYPE_NAMES[dtype]
    except KeyError:
        raise KernelCompileError(f"a Metal kernel has no {dtype}; give it float32, float16 or bfloat16") from None


def make_signature(
    texts: KernelTexts,
    inputs: Sequence[tuple[mx.Dtype, tuple[int, ...]]],
    output_dtypes: Sequence[mx.Dtype],
    template: Sequence[tuple[str, TemplateValue]] = (),
) -> Signature:
    """MLX's signature for inputs of these dtypes and shapes."""
    values = [_template_text(value) for _, value in template]
    function_name = _function_name(texts, inputs, output_dtypes, values)
    specialisation = f"{function_name}<{', '.join(values)}>" if values else function_name
    parameters = (*_input_parameters(texts, inputs), *_output_parameters(texts, output_dtypes))
    attributes = tuple(name for name in THREAD_ATTRIBUTES if texts.uses(name))
    after_source = "\n}\n"
    if values:
        after_source += (
            f'\ntemplate [[host_name("{function_name}")]] [[kernel]] decltype({specialisation}) {specialisation};\n'
        )
    return Signature(
        function_name,
        specialisation,
        parameters,
        attributes,
        _template_line(template) + _declaration(texts, function_name, parameters, attributes, len(inputs)),
        after_source,
    )


def _function_name(
    texts: KernelTexts,
    inputs: Sequence[tuple[mx.Dtype, tuple[int, ...]]],
    output_dtypes: Sequence[mx.Dtype],
    template_values: Sequence[str],
) -> str:
    name = f"custom_kernel_{texts.name}"
    if template_values:
        name += "_" + re.sub(r"[<>,\-]", "_", "".join(f"_{value}" for value in template_values))
    for dtype, shape in inputs:
        # An s marks a scalar, a c an array in constant memory.
        name += f"_{type_name(dtype)}" + ("s" if not shape else "c" if _is_constant(shape) else "")
    return name + "".join(f"_{type_name(dtype)}" for dtype in output_dtypes)


def _is_constant(shape: tuple[int, ...]) -> bool:
    size = 1
    for length in shape:
        size *= length
    return size < _CONSTANT_BELOW


def _template_text(value: TemplateValue) -> str:
    return str(int(value)) if isinstance(value, int) else type_name(value)


def _template_line(template: Sequence[tuple[str, TemplateValue]]) -> str:
    if not template:
        return ""
    kinds = [
        f"{'bool' if isinstance(value, bool) else 'int' if isinstance(value, int) else 'typename'} {name}"
        for name, value in template
    ]
    return f"template <{', '.join(kinds)}>\n"


def _input_parameters(texts: KernelTexts, inputs: Sequence[tuple[mx.Dtype, tuple[int, ...]]]) -> list[Parameter]:
    parameters = []
    for name, (dtype, shape) in zip(texts.input_names, inputs, strict=True):
        space = "constant" if _is_constant(shape) else "device"
        cpp_type = type_name(dtype)
        mark = "*" if shape else "&"
        parameters.append(Parameter(f"const {space} {cpp_type}{mark} {name}", name, cpp_type, not shape))
        if not shape:
            continue
        if texts.uses(f"{name}_shape"):
            parameters.append(Parameter(f"const constant int* {name}_shape", f"{name}_shape", "int"))
        if texts.uses(f"{name}_strides"):
            parameters.append(Parameter(f"const constant int64_t* {name}_strides", f"{name}_strides", "int64_t"))
        if texts.uses(f"{name}_ndim"):
            parameters.append(Parameter(f"const constant int& {name}_ndim", f"{name}_ndim", "int", True))
    return parameters


def _output_parameters(texts: KernelTexts, output_dtypes: Sequence[mx.Dtype]) -> list[Parameter]:
    parameters = []
    for name, dtype in zip(texts.output_names, output_dtypes, strict=True):
        cpp_type = f"atomic<{type_name(dtype)}>" if texts.atomic_outputs else type_name(dtype)
        parameters.append(Parameter(f"device {cpp_type}* {name}", name, cpp_type, is_output=True))
    return parameters


def _declaration(
    texts: KernelTexts,
    function_name: str,
    parameters: Sequence[Parameter],
    attributes: Sequence[str],
    num_inputs: int,
) -> str:
    lines = [f"  {parameter.declaration} [[buffer({i})]]" for i, parameter in enumerate(parameters)]
    lines += [f"  {THREAD_ATTRIBUTES[name]} {name} [[{name}]]" for name in attributes]
    ends = [","] * (len(lines) - 1) + [") {"]
    first_output = next(i for i, parameter in enumerate(parameters) if parameter.is_output)
    if not attributes and first_output > num_inputs:
        # MLX closes the signature after every output then; with two of them it is no longer C++.
        ends[first_output:] = [") {"] * (len(lines) - first_output)
    body = "\n".join(line + end for line, end in zip(lines, ends, strict=True))
    return f"[[kernel]] void {function_name}(\n{body}\n"
