"""The runner is called like `mx.fast.metal_kernel`: launches, thread attributes, SIMD operations, names and errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from minivllm.backend import mx
from minivllm.metal.errors import KernelCompileError, KernelNameReused, MetalRunnerError
from minivllm.metal.runner import MetalKernel, Options, metal_kernel, options

pytestmark = [
    pytest.mark.usefixtures("compiler"),
    pytest.mark.filterwarnings("ignore::minivllm.metal.errors.KernelNameReused"),  # most kernels here are called k
]

COPY = "uint i = thread_position_in_grid.x;\nout[i] = x[i];"


def make(source: str, name: str = "k", **arguments: Any) -> MetalKernel:
    return metal_kernel(name=name, input_names=["x"], output_names=["out"], source=source, **arguments)


def call(kernel: MetalKernel, x: Any, num_outputs: int = 1, **arguments: Any) -> mx.array:
    defaults: dict[str, Any] = {
        "grid": (num_outputs, 1, 1),
        "threadgroup": (64, 1, 1),
        "output_shapes": [(num_outputs,)],
        "output_dtypes": [mx.float32],
    }
    (out,) = kernel(inputs=[x], **{**defaults, **arguments})
    return out


class TestLaunches:
    def test_every_thread_of_a_ragged_grid_runs_once_and_knows_where_it_is(self) -> None:
        """A grid of 5 x 3 x 2 in threadgroups of 2 x 2 x 2: those at the edge are smaller."""
        attributes = {
            "thread_position_in_grid": lambda x, y, z: (x, y, z),
            "threadgroup_position_in_grid": lambda x, y, z: (x // 2, y // 2, z // 2),
            "thread_position_in_threadgroup": lambda x, y, z: (x % 2, y % 2, z % 2),
            "threads_per_threadgroup": lambda x, y, z: (2 - (x == 4), 2 - (y == 2), 2),
            "dispatch_threads_per_threadgroup": lambda x, y, z: (2, 2, 2),
            "threads_per_grid": lambda x, y, z: (5, 3, 2),
            "threadgroups_per_grid": lambda x, y, z: (3, 2, 1),
        }
        writes = "".join(
            f"out[at * {3 * len(attributes)} + {3 * i + axis}] = {name}.{'xyz'[axis]};\n"
            for i, name in enumerate(attributes)
            for axis in range(3)
        )
        source = "uint3 p = thread_position_in_grid;\nuint at = (p.z * 3 + p.y) * 5 + p.x;\n" + writes
        out = call(
            make(source, "attributes"),
            0,
            grid=(5, 3, 2),
            threadgroup=(2, 2, 2),
            output_shapes=[(2, 3, 5, len(attributes), 3)],
            output_dtypes=[mx.uint32],
        )
        found = np.array(out)
        for z, y, x in np.ndindex(2, 3, 5):
            expected = [value(x, y, z) for value in attributes.values()]
            assert found[z, y, x].tolist() == [list(row) for row in expected]

    def test_lanes_and_simd_groups_count_the_threads_that_are_there(self) -> None:
        source = (
            "uint i = thread_index_in_threadgroup;\nout[i * 3] = thread_index_in_simdgroup;\n"
            "out[i * 3 + 1] = simdgroup_index_in_threadgroup;\nout[i * 3 + 2] = simdgroups_per_threadgroup;"
        )
        out = call(
            make(source), 0, grid=(70, 1, 1), threadgroup=(128, 1, 1), output_shapes=[(70, 3)], output_dtypes=[mx.int32]
        )
        assert out.tolist() == [[i % 32, i // 32, 3] for i in range(70)]

    def test_a_grid_of_nothing_runs_nothing(self) -> None:
        assert call(make(COPY), mx.zeros((0,)), grid=(0, 1, 1), output_shapes=[(0,)]).shape == (0,)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"threadgroup": (1025, 1, 1)}, r"Thread group size \(1025\) is greater"),
            ({"threadgroup": (0, 1, 1)}, "has no threads"),
            ({"grid": (1, 1)}, "grid is three numbers"),
            ({"output_shapes": []}, "Expected `output_shapes` to have size 1 but got size 0"),
            ({"template": [("T", 1.5)]}, "Invalid template argument"),
            ({"template": [("T", 2**31)]}, "Invalid template argument"),
        ],
    )
    def test_a_wrong_call_is_refused(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call(make(COPY), mx.zeros((4,)), **arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"compile_options": {"fast": True}}, "Unknown compile option `fast`"),
            ({"compile_options": {"math_mode": "sloppy"}}, "Expected math_mode"),
            ({"name": "a-b"}, "letters, digits and underscores"),
        ],
    )
    def test_a_wrong_kernel_is_refused(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            make(COPY, **arguments)

    def test_all_options_of_mlx_are_accepted(self) -> None:
        kernel = make(COPY, compile_options={"math_mode": "fast"}, ensure_row_contiguous=True, atomic_outputs=False)
        assert call(kernel, mx.array([1.0]), stream=mx.cpu, init_value=3).tolist() == [1]

    @pytest.mark.parametrize("value", [True, 7, 2.5])
    def test_a_number_is_a_constant_without_dimensions(self, value: float) -> None:
        assert call(make("out[0] = x;"), value).item() == value

    def test_template_values_are_types_numbers_and_flags(self) -> None:
        source = "T y = x[0];\nout[0] = FLAG ? float(y) * N : -1;"
        values = [("T", mx.int32), ("N", -3), ("FLAG", True)]
        assert call(make(source), mx.array([2.75]), template=values).item() == -6

    def test_the_generated_text_is_printed_on_request(self, capsys: pytest.CaptureFixture[str]) -> None:
        call(make(COPY), mx.array([1.0]), verbose=True)
        printed = capsys.readouterr().out
        assert printed.startswith("Generated source code for `k`:\n```\n[[kernel]] void custom_kernel_k_floatc_float(")

    def test_a_signature_that_mlx_breaks_is_refused_with_the_remedy(self) -> None:
        kernel = metal_kernel(
            name="two", input_names=["x"], output_names=["a", "b"], source="a[0] = b[0] = x_shape[0];"
        )
        with pytest.raises(KernelCompileError, match="name an attribute in `source`"):
            kernel(
                inputs=[mx.zeros((3,))],
                grid=(1, 1, 1),
                threadgroup=(1, 1, 1),
                output_shapes=[(1,), (1,)],
                output_dtypes=[mx.float32] * 2,
            )


SIMD = {
    "simd_sum(x[i])": lambda x: [sum(x)] * 32,
    "simd_max(x[i])": lambda x: [max(x)] * 32,
    "simd_min(x[i])": lambda x: [min(x)] * 32,
    "simd_product(i < 3 ? x[i] : 1.0f)": lambda x: [x[0] * x[1] * x[2]] * 32,
    "float(simd_and(uint(x[i]) | 1u))": lambda x: [float(np.bitwise_and.reduce([int(v) | 1 for v in x]))] * 32,
    "float(simd_or(uint(x[i])))": lambda x: [float(np.bitwise_or.reduce([int(v) for v in x]))] * 32,
    "float(simd_xor(uint(x[i])))": lambda x: [float(np.bitwise_xor.reduce([int(v) for v in x]))] * 32,
    "simd_shuffle(x[i], (i + 5) % 32)": lambda x: [x[(i + 5) % 32] for i in range(32)],
    "simd_shuffle_xor(x[i], 9)": lambda x: [x[i ^ 9] for i in range(32)],
    "simd_shuffle_down(x[i], 3)": lambda x: [x[i + 3] if i < 29 else x[i] for i in range(32)],
    "simd_shuffle_up(x[i], 3)": lambda x: [x[i - 3] if i >= 3 else x[i] for i in range(32)],
    "simd_shuffle_rotate_down(x[i], 3)": lambda x: [x[(i + 3) % 32] for i in range(32)],
    "simd_shuffle_rotate_up(x[i], 3)": lambda x: [x[(i - 3) % 32] for i in range(32)],
    "simd_broadcast(x[i], 11)": lambda x: [x[11]] * 32,
    "simd_broadcast_first(x[i])": lambda x: [x[0]] * 32,
    "simd_prefix_inclusive_sum(x[i])": lambda x: np.cumsum(x).tolist(),
    "simd_prefix_exclusive_sum(x[i])": lambda x: [0, *np.cumsum(x)[:-1].tolist()],
    "simd_is_first() ? 1.0f : 0.0f": lambda x: [1.0] + [0.0] * 31,
    "float(simd_all(x[i] >= 0) ? 1 : 0)": lambda x: [1.0] * 32,
    "float(simd_any(x[i] == 17) ? 1 : 0)": lambda x: [1.0] * 32,
    "float(ulong(simd_ballot(i % 2 == 0)) & 0xffff)": lambda x: [float(0x5555)] * 32,
    "simd_sum(float2(x[i], 1)).y": lambda x: [32.0] * 32,
    "float(simd_sum(half(1)))": lambda x: [32.0] * 32,
    "float(simd_sum(bfloat(1)))": lambda x: [32.0] * 32,
}


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_simd_operations(order: str) -> None:
    """All of them in one kernel, each checked against a loop over 32 lanes."""
    source = "uint i = thread_index_in_simdgroup;\n" + "".join(
        f"out[i + {32 * number}] = {expression};\n" for number, expression in enumerate(SIMD)
    )
    x = [float((7 * i + 3) % 32) for i in range(32)]
    with options(Options(order=order)):  # type: ignore[arg-type]
        out = call(make(source, "simd"), mx.array(x), grid=(32, 1, 1), output_shapes=[(len(SIMD), 32)]).tolist()
    for row, (expression, expected) in zip(out, SIMD.items(), strict=True):
        assert row == expected(x), expression


VECTORS = {
    "dot(a, b)": 70,
    "a.wzyx[0]": 4,
    "(a * 2 + b.yyyy).z": 12,
    "float4(a.xy, b.zw).w": 8,
    "length(float2(3, 4))": 5,
    "float(all(a < b))": 1,
    "float((a == float4(1)).x + (a == float4(1)).y)": 1,
    "max(a, b.x).w": 5,
    "float(half4(a)[2])": 3,
    "float(bfloat2(a.yz).y)": 3,
    "select(a, b, a > 2).z": 7,
    "cross(a.xyz, b.xyz).x": -4,
    "float(uchar4(a).w << 1)": 8,
    "as_type<float>(as_type<uint>(a.y))": 2,
    "fma(a.x, b.y, 1.0f)": 7,
    "clamp(9.5f, 0.0f, 3.0f)": 3,
    "float(popcount(255u) + clz(1u) + ctz(8u))": 42,
    "metal::precise::rsqrt(4.0f) + metal::fast::exp(0.0f)": 1.5,
    "float(Limits<float>::min == -INFINITY) + float(Limits<int>::max > 0)": 2,
    "float(1.5h * 2)": 3,
    "float(a.y > 1 ? bfloat(3) : 0)": 3,
    "vec<float, 3>(a.xyz).z": 3,
}


def test_vectors_and_functions() -> None:
    source = "float4 a(1, 2, 3, 4), b(5, 6, 7, 8);\n" + "".join(
        f"out[{i}] = {expression};\n" for i, expression in enumerate(VECTORS)
    )
    out = call(make(source, "vectors"), 0, grid=(1, 1, 1), output_shapes=[(len(VECTORS),)]).tolist()
    assert dict(zip(VECTORS, out, strict=True)) == VECTORS


def test_writing_to_swizzles_and_vectors_in_memory() -> None:
    source = (
        "float4 v = ((const device float4*)x)[1];\nv.xy += 10;\nv.zw = v.wz;\nv.y = v.a;\n((device float4*)out)[0] = v;"
    )
    assert call(make(source), mx.arange(8) / 1.0, grid=(1, 1, 1), output_shapes=[(4,)]).tolist() == [14, 6, 7, 6]


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_arithmetic_rounds_after_every_operation_as_mlx_does(dtype: mx.Dtype) -> None:
    source = "uint i = thread_position_in_grid.x;\nout[i] = T(x[i] * x[i] + x[i]) / T(3);"
    x = mx.random.normal((200,), key=mx.random.key(0)).astype(dtype)
    found = call(make(source), x, 200, template=[("T", dtype)], output_dtypes=[dtype])
    expected = (x * x + x) / mx.array(3, dtype)
    assert mx.array_equal(found, expected)


class TestNames:
    def test_a_name_with_another_text_is_reported(self) -> None:
        call(make("out[0] = 1;", "reused"), 0)
        with pytest.warns(KernelNameReused, match="`custom_kernel_reused_int32_ts_float` had another text"):
            assert call(make("out[0] = 2;", "reused"), 0).item() == 2

    def test_the_same_text_and_another_specialisation_are_not(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                kernel = make("out[0] = N;", "specialised")
                assert [call(kernel, 0, template=[("N", n)]).item() for n in (1, 2, 1)] == [1, 2, 1]


class TestTransformations:
    def test_the_runner_has_no_place_in_compile_and_vmap(self) -> None:
        kernel = make(COPY)
        for transform in (mx.compile, mx.vmap):
            with pytest.raises(MetalRunnerError, match=r"no place in mx\.compile or mx\.vmap"):
                transform(lambda x: call(kernel, x, 3))(mx.ones((2, 3)))

    def test_a_gradient_is_an_error_and_not_zero(self) -> None:
        kernel = make(COPY)
        with pytest.raises(MetalRunnerError, match="no gradient of its own"):
            mx.grad(lambda x: call(kernel, x, 3).sum())(mx.ones((3,)))


@pytest.mark.parametrize("wrong", [{"order": "sideways"}, {"stray_reads": "ones"}, {"timeout_s": 0}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Options(**wrong)
