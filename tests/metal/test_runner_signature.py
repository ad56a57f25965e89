"""The text around a kernel's body equals what MLX itself generates, which it prints on any machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minivllm.backend import mx
from minivllm.metal.errors import KernelCompileError
from minivllm.metal.signature import THREAD_ATTRIBUTES, KernelTexts, TemplateValue, make_signature

DTYPES = (mx.bool_, mx.uint8, mx.int16, mx.uint32, mx.int64, mx.float16, mx.bfloat16, mx.float32, mx.complex64)
SHAPES = ((), (1,), (7,), (8,), (2, 3), (2, 2, 2), (3, 0, 3), (1, 40))
WORDS = (*THREAD_ATTRIBUTES, "in0_shape", "in0_strides", "in0_ndim", "in1_shape", "in1_ndim", "unrelated")

Inputs = list[tuple[mx.Dtype, tuple[int, ...]]]


def mlx_text(
    capfd: pytest.CaptureFixture[str],
    texts: KernelTexts,
    inputs: Inputs,
    output_dtypes: list[mx.Dtype],
    template: list[tuple[str, TemplateValue]],
    folder: Path,
) -> str:
    kernel = mx.fast.metal_kernel(
        name=texts.name,
        input_names=texts.input_names,
        output_names=texts.output_names,
        source=texts.source,
        header=texts.header,
        atomic_outputs=texts.atomic_outputs,
    )

    def call(*arrays: mx.array) -> list[mx.array]:
        return kernel(  # type: ignore[operator]
            inputs=list(arrays),
            template=template,
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
            output_shapes=[(3,)] * len(output_dtypes),
            output_dtypes=output_dtypes,
            verbose=True,
        )

    capfd.readouterr()
    mx.export_function(str(folder / "kernel.mlxfn"), call, *(mx.zeros(shape, dtype) for dtype, shape in inputs))
    printed = capfd.readouterr().out
    opening = f"Generated source code for `{texts.name}`:\n```\n"
    assert printed.startswith(opening)
    return printed.removeprefix(opening).removesuffix("\n```\n")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=5),
    inputs=st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES)), min_size=1, max_size=3),
    output_dtypes=st.lists(st.sampled_from(DTYPES[:-1]), min_size=1, max_size=2),
    values=st.lists(st.one_of(st.booleans(), st.integers(-3, 300), st.sampled_from(DTYPES)), max_size=3),
    header=st.sampled_from(("", "// a header\n", "#define X 1")),
    atomic_outputs=st.booleans(),
)
def test_the_text_equals_mlxs_own(
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: list[str],
    inputs: Inputs,
    output_dtypes: list[mx.Dtype],
    values: list[TemplateValue],
    header: str,
    atomic_outputs: bool,
) -> None:
    texts = KernelTexts(
        "some_kernel",
        tuple(f"in{i}" for i in range(len(inputs))),
        tuple(f"out{i}" for i in range(len(output_dtypes))),
        "  // " + " ".join(words) + "\n",
        header,
        atomic_outputs,
    )
    template = [(f"T{i}", value) for i, value in enumerate(values)]
    expected = mlx_text(capfd, texts, inputs, output_dtypes, template, tmp_path)
    assert make_signature(texts, inputs, output_dtypes, template).text(texts) == expected


def test_a_dtype_that_metal_lacks_is_named() -> None:
    texts = KernelTexts("k", ("x",), ("out",), "out[0] = x[0];", "", False)
    with pytest.raises(KernelCompileError, match=r"no mlx\.core\.float64"):
        make_signature(texts, [(mx.float64, (9,))], [mx.float32])
