"""The kernels of MLX's own documentation run unchanged and give what MLX's operations give."""

from __future__ import annotations

import pytest

from minivllm.backend import mx
from minivllm.metal.errors import KernelFault
from minivllm.metal.runner import Options, metal_kernel, options
from tests.metal.runner_kernels import (
    EXP,
    GRID_SAMPLE,
    GRID_SAMPLE_GRADIENT,
    STRIDED_EXP,
    grid_sample_reference,
    one_output,
)

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_exp_of_every_floating_type(dtype: mx.Dtype) -> None:
    kernel = metal_kernel(name="myexp", input_names=["inp"], output_names=["out"], source=EXP)
    x = mx.random.normal(shape=(4, 16), key=mx.random.key(0)).astype(dtype)
    out = one_output(kernel, x, template=[("T", dtype)])
    assert out.dtype == dtype
    assert mx.allclose(out, mx.exp(x), rtol=1e-6 if dtype == mx.float32 else 0)


VIEWS = {
    "slice": lambda x: x[::2],
    "transpose": lambda x: x.T,
    "reversed": lambda x: x[:, ::-1],
    "broadcast": lambda x: mx.broadcast_to(x[0], (5, x.shape[1])),
    "part": lambda x: x[1:3, 2:7],
}


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "reversed"])
@pytest.mark.parametrize("ensure_row_contiguous", [True, False])
def test_a_strided_exp_follows_every_kind_of_view(view: str, ensure_row_contiguous: bool) -> None:
    kernel = metal_kernel(
        name="myexp_strided",
        input_names=["inp"],
        output_names=["out"],
        source=STRIDED_EXP,
        ensure_row_contiguous=ensure_row_contiguous,
    )
    for dtype in (mx.float32, mx.bfloat16):
        x = VIEWS[view](mx.arange(48).reshape(4, 12).astype(dtype) / 16)
        assert mx.allclose(one_output(kernel, x, template=[("T", dtype)]), mx.exp(x), rtol=1e-6)


def test_the_unsigned_index_of_the_documentation_cannot_go_backwards_and_is_reported() -> None:
    kernel = metal_kernel(
        name="myexp_strided",
        input_names=["inp"],
        output_names=["out"],
        source=STRIDED_EXP,
        ensure_row_contiguous=False,
    )
    with pytest.raises(KernelFault, match=r"reads inp\[4294967295\], and valid are -11 to 36"):
        one_output(kernel, VIEWS["reversed"](mx.zeros((4, 12))), template=[("T", mx.float32)])
    signed = metal_kernel(
        name="myexp_signed",
        input_names=["inp"],
        output_names=["out"],
        source=STRIDED_EXP.replace("uint loc = elem_to_loc(elem,", "auto loc = elem_to_loc<int64_t>(elem,"),
        ensure_row_contiguous=False,
    )
    x = VIEWS["reversed"](mx.arange(48).reshape(4, 12) / 16.0)
    assert mx.allclose(one_output(signed, x, template=[("T", x.dtype)]), mx.exp(x), rtol=1e-6)


@pytest.mark.parametrize("view", ["slice", "transpose", "reversed"])
def test_plain_indexing_sees_a_contiguous_copy(view: str) -> None:
    kernel = metal_kernel(name="myexp", input_names=["inp"], output_names=["out"], source=EXP)
    x = VIEWS[view](mx.arange(48).reshape(4, 12) / 16.0)
    assert mx.allclose(one_output(kernel, x, template=[("T", x.dtype)]), mx.exp(x), rtol=1e-6)


@pytest.fixture
def image() -> mx.array:
    return mx.random.normal((2, 5, 4, 3), key=mx.random.key(1))


@pytest.fixture
def grid() -> mx.array:
    return mx.random.uniform(-1.0, 1.0, (2, 3, 2, 2), key=mx.random.key(2))


def sample(x: mx.array, grid: mx.array) -> mx.array:
    kernel = metal_kernel(name="grid_sample", input_names=["x", "grid"], output_names=["out"], source=GRID_SAMPLE)
    shape = (*grid.shape[:3], x.shape[-1])
    (out,) = kernel(
        inputs=[x, grid],
        template=[("T", x.dtype)],
        output_shapes=[shape],
        output_dtypes=[x.dtype],
        grid=(shape[0] * shape[1] * shape[2] * shape[3], 1, 1),
        threadgroup=(256, 1, 1),
    )
    return out


def sample_gradients(x: mx.array, grid: mx.array, cotangent: mx.array) -> list[mx.array]:
    kernel = metal_kernel(
        name="grid_sample_grad",
        input_names=["x", "grid", "cotangent"],
        output_names=["x_grad", "grid_grad"],
        source=GRID_SAMPLE_GRADIENT,
        atomic_outputs=True,
    )
    padded = (x.shape[-1] + 31) // 32 * 32
    return kernel(
        inputs=[x, grid, cotangent],
        template=[("T", x.dtype)],
        output_shapes=[x.shape, grid.shape],
        output_dtypes=[x.dtype, x.dtype],
        grid=(grid.size // 2 * padded, 1, 1),
        threadgroup=(256, 1, 1),
        init_value=0,
    )


def test_grid_sample_reads_beside_its_image_and_says_where(image: mx.array, grid: mx.array) -> None:
    with pytest.raises(KernelFault, match=r"T I_\w\w = x\[.*reads x\[-?\d+\], and valid are 0 to 119") as caught:
        sample(image, mx.full(grid.shape, -1.0))  # the corner: three of its four neighbours are outside
    assert caught.value.kind == "out of range"


def test_grid_sample_equals_the_reference_where_stray_reads_are_let_be(image: mx.array, grid: mx.array) -> None:
    with options(Options(stray_reads="zero")):
        assert mx.allclose(sample(image, grid), grid_sample_reference(image, grid), atol=1e-5)


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_the_atomic_gradients_equal_those_of_the_reference(image: mx.array, grid: mx.array, order: str) -> None:
    cotangent = mx.random.normal((2, 3, 2, 3), key=mx.random.key(3))
    _, expected = mx.vjp(grid_sample_reference, [image, grid], [cotangent])
    halved = expected[1] * mx.array([(4 // 2) / (4 / 2), (5 // 2) / (5 / 2)])  # the kernel halves sizes as integers
    with options(Options(order=order)):  # type: ignore[arg-type]
        x_grad, grid_grad = sample_gradients(image, grid, cotangent)
    assert mx.allclose(x_grad, expected[0], atol=1e-5)
    assert mx.allclose(grid_grad, halved, atol=1e-4)


def test_the_custom_function_of_the_documentation_has_gradients(image: mx.array, grid: mx.array) -> None:
    @mx.custom_function
    def grid_sample(x: mx.array, grid: mx.array) -> mx.array:
        return sample(x, grid)

    @grid_sample.vjp
    def gradients(primals: list[mx.array], cotangent: mx.array, _: mx.array) -> list[mx.array]:
        return sample_gradients(*primals, cotangent)

    with options(Options(stray_reads="zero")):
        found = mx.grad(lambda x: grid_sample(x, grid).sum())(image)
    assert mx.allclose(found, mx.grad(lambda x: grid_sample_reference(x, grid).sum())(image), atol=1e-5)
