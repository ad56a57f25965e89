"""Clang accepts the pointers of right kernels and refuses those that leave their memory, as Apple's compiler would."""

from __future__ import annotations

import pytest

from minivllm.backend import mx
from minivllm.metal.address_spaces import check_address_spaces, find_clang
from minivllm.metal.errors import AddressSpaceError
from minivllm.metal.signature import KernelTexts, make_signature

pytestmark = pytest.mark.skipif(find_clang() is None, reason="address spaces are judged by clang, and there is none")


def check(source: str, header: str = "", *, atomic_outputs: bool = False) -> None:
    """Of a kernel with `x` in device memory, `table` in constant memory, a scalar `s`, and `out`."""
    texts = KernelTexts("k", ("x", "table", "s"), ("out",), source, header, atomic_outputs)
    kinds = [(mx.float32, (64,)), (mx.float32, (4,)), (mx.float32, ())]
    check_address_spaces(texts, make_signature(texts, kinds, [mx.float32], [("T", mx.float16), ("N", 4)]))


RIGHT = {
    "device": "device float* p = out + N;\n*p = x[0];",
    "constant": "const constant float* p = table + 1;\nout[0] = *p + s;",
    "thread": "float mine[N];\nthread float* p = mine;\np[0] = s;\nout[0] = p[0];",
    "threadgroup": "threadgroup T a[N][32];\nthreadgroup T* p = a[0];\np[0] = T(s);\nout[0] = p[1];",
    "deduced": "auto p = x + 3;\nauto q = table;\nout[0] = p[0] + q[0];",
    "same space": "device float4* p = (device float4*)out;\np[0] = float4(s);",
    "vectors": "float4 v = float4(1, 2, 3, 4);\nv.xy += float2(s);\nout[0] = dot(v, vec<T, 4>(v.xyz, 1.0f));",
    "shared atomics": (
        "threadgroup atomic<int> n;\natomic_store_explicit(&n, 0, memory_order_relaxed);\n"
        "out[0] = atomic_fetch_add_explicit(&n, 1, memory_order_relaxed);"
    ),
    "SIMD": "out[0] = simd_sum(x[0]) + simd_shuffle_xor(T(s), 1);\nthreadgroup_barrier(mem_flags::mem_threadgroup);",
}
WRONG = {
    "device as thread": "\nthread float* p = out;",
    "device as threadgroup": "\nthreadgroup float* p = out;",
    "constant as device": "\nconst device float* p = table;",
    "threadgroup as device": "threadgroup float a[4];\ndevice float* p = a;",
    "thread as device": "float a[4];\ndevice float* p = a;",
    "a reference": "\nthread float& r = out[0];",
    "a cast": "threadgroup float a[4];\ndevice float* p = (device float*)a;",
    "assigned later": "device float* p = out; threadgroup float a[4];\np = a;",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_accepted(name: str) -> None:
    check(RIGHT[name])


def test_atomic_outputs_are_accepted() -> None:
    check("atomic_fetch_add_explicit(&out[N], x[0], memory_order_relaxed);", atomic_outputs=True)


@pytest.mark.parametrize("name", WRONG)
def test_a_pointer_into_other_memory_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(AddressSpaceError, match="source line 2 ") as caught:
        check(WRONG[name])
    assert "__attribute__" not in str(caught.value)
    assert "device, constant, threadgroup or thread" in str(caught.value)


def test_an_argument_is_refused_where_the_function_is_called() -> None:
    header = "float first(const thread float* p) { return p[0]; }\n"
    check("float a[1] = {s};\nout[0] = first(a);", header)
    with pytest.raises(AddressSpaceError, match=r"source line 2 `out\[0\] = first\(x\);`: .*device memory"):
        check("\nout[0] = first(x);", header)


def test_what_else_clang_dislikes_is_not_reported() -> None:
    check("out[0] = no_such_function(s);")
