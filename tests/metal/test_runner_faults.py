"""Broken kernels: each is an exception that says what is wrong, in which line and which thread."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Sequence

import pytest

from minivllm.backend import mx
from minivllm.metal.address_spaces import find_clang
from minivllm.metal.errors import AddressSpaceError, KernelCompileError, KernelFault
from minivllm.metal.runner import Options, metal_kernel

pytestmark = pytest.mark.usefixtures("compiler")

PLAIN, CHECKED = Options(check=False), Options(check=True)
T = "uint t = thread_position_in_threadgroup.x; // line 1\n"


def run(
    source: str,
    *,
    options: Options = CHECKED,
    num_threads: int = 64,
    threadgroup: int = 64,
    header: str = "",
    inputs: Sequence[mx.array] | None = None,
    output_dtype: mx.Dtype = mx.float32,
    init_value: float | None = None,
    atomic_outputs: bool = False,
) -> mx.array:
    """`out` [64] of a kernel whose input `x` holds 0 to 63."""
    arrays = inputs if inputs is not None else [mx.arange(64).astype(mx.float32)]
    kernel = metal_kernel(
        name="k",
        input_names=["x", "pages"][: len(arrays)],
        output_names=["out"],
        source=source,
        header=header,
        atomic_outputs=atomic_outputs,
        runner_options=options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every kernel here is called k
        (out,) = kernel(
            inputs=arrays,
            grid=(num_threads, 1, 1),
            threadgroup=(threadgroup, 1, 1),
            output_shapes=[(64,)],
            output_dtypes=[output_dtype],
            init_value=init_value,
        )
    return out


def fault(source: str, **arguments: object) -> KernelFault:
    with pytest.raises(KernelFault) as caught:
        run(source, **arguments)  # type: ignore[arg-type]
    return caught.value


class TestTheSixBrokenKernels:
    def test_a_missing_barrier_is_a_race(self) -> None:
        source = T + "threadgroup float shared[64];\nshared[t] = x[t];\nout[t] = shared[t ^ 1];"
        found = fault(source, options=Options(order="random", seed=1))
        assert found.kind in ("race", "uninitialised memory")
        assert "source line 4 `out[t] = shared[t ^ 1];`" in str(found)
        assert "threadgroup_barrier(mem_flags::mem_threadgroup)" in str(found)

    def test_a_write_to_an_input(self) -> None:
        source = T + "((device float*)x)[t] = 1;\nout[t] = x[t];"
        for options in (PLAIN, CHECKED):
            found = fault(source, options=options)
            assert found.kind == "write to an input"
            assert "source line 2" in str(found)
            assert "thread (0, 0, 0) of threadgroup (0, 0, 0) writes to input x[0]" in str(found)

    def test_a_barrier_under_divergent_flow(self) -> None:
        source = T + "if (t < 40) {\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\nout[t] = x[t];"
        for options in (PLAIN, CHECKED):
            found = fault(source, options=options)
            assert found.kind == "barrier under divergent flow"
            assert "source line 3" in str(found)
            assert "40 of 64 threads wait at this barrier" in str(found)
            assert "thread (40, 0, 0) of threadgroup (0, 0, 0) has returned" in str(found)

    def test_an_out_of_range_page(self) -> None:
        pages = mx.array([0, 1, 7, 2] * 4)  # the input has four pages of 16 elements, and none is number 7
        source = T + "int page = pages[t / 4];\nout[t] = x[page * 16 + t % 16];"
        for options in (PLAIN, CHECKED):
            found = fault(source, options=options, inputs=[mx.zeros((64,)), pages])
            assert found.kind == "out of range"
            assert "source line 3 `out[t] = x[page * 16 + t % 16];`" in str(found)
            assert "thread (8, 0, 0) of threadgroup (0, 0, 0) reads x[120], and valid are 0 to 63" in str(found)

    @pytest.mark.skipif(find_clang() is None, reason="address spaces are judged by clang, and there is none")
    def test_a_wrong_address_space(self) -> None:
        with pytest.raises(AddressSpaceError, match=r"source line 2 `thread float\* p = out \+ t;`: .*device float \*"):
            run(T + "thread float* p = out + t;\n*p = x[t];")

    def test_uninitialised_threadgroup_memory(self) -> None:
        source = (
            T + "threadgroup float shared[64];\nif (t > 0) shared[t] = x[t];\n"
            "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[t] = shared[t];"
        )
        found = fault(source)
        assert found.kind == "uninitialised memory"
        assert "source line 5 `out[t] = shared[t];`" in str(found)
        assert "thread (0, 0, 0) of threadgroup (0, 0, 0) reads element 0 (4 bytes each)" in str(found)
        assert mx.isnan(run(source, options=PLAIN)[0]).item()  # without the checks it is NaN


class TestRaces:
    def test_both_lines_and_both_threads_are_named(self) -> None:
        source = T + "threadgroup float a[1];\nif (t == 3) a[0] = 1;\nout[t] = 0;\nif (t == 5) out[t] = a[0];"
        found = str(fault(source))
        assert "source line 5 `if (t == 5) out[t] = a[0];`: race: thread (5, 0, 0)" in found
        assert "which thread (3, 0, 0) of threadgroup (0, 0, 0) wrote in source line 3 `if (t == 3) a[0] = 1;`" in found

    @pytest.mark.parametrize("order", ["forward", "reverse", "random"])
    def test_a_missing_second_barrier_is_found_in_every_order(self, order: str) -> None:
        """Reading what the next round overwrites: the classic mistake that a GPU forgives most of the time."""
        source = T + (
            "threadgroup float shared[64];\nfloat sum = 0;\n"
            "for (int i = 0; i < 2; i++) {\n  shared[t] = x[t] + i;\n"
            "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  sum += shared[63 - t];\n}\nout[t] = sum;"
        )
        found = fault(source, options=Options(order=order, seed=3))  # type: ignore[arg-type]
        assert found.kind == "race"
        assert "`shared[t] = x[t] + i;`" in str(found) and "`sum += shared[63 - t];`" in str(found)
        fixed = source.replace("];\n}", "];\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}")
        assert run(fixed)[0].item() == 63 + 64

    def test_a_barrier_orders_only_the_memory_it_names(self) -> None:
        source = T + "out[t] = x[t];\nthreadgroup_barrier(mem_flags::{});\nfloat y = out[t ^ 1];\n"
        source += "threadgroup_barrier(mem_flags::mem_device);\nout[t] = y;"
        found = fault(source.replace("{}", "mem_threadgroup"))
        assert found.kind == "race" and "mem_flags::mem_device" in str(found)
        assert run(source.replace("{}", "mem_device"))[0].item() == 1

    def test_a_simdgroup_barrier_orders_one_simd_group(self) -> None:
        source = T + (
            "threadgroup float a[64];\na[t] = x[t];\n"
            "simdgroup_barrier(mem_flags::mem_threadgroup);\nout[t] = a[t ^ {}];"
        )
        assert run(source.replace("{}", "1"))[0].item() == 1
        assert fault(source.replace("{}", "32"), options=Options(order="random")).kind in (
            "race",
            "uninitialised memory",
        )

    def test_threadgroups_race_whatever_barriers_they_have(self) -> None:
        found = fault(T + "threadgroup_barrier(mem_flags::mem_device);\nout[t] = x[t];", threadgroup=32)
        assert "thread (0, 0, 0) of threadgroup (1, 0, 0) writes out[0]" in str(found)
        assert "threadgroups run in any order" in str(found)

    def test_atomics_do_not_race_with_each_other_but_with_plain_accesses(self) -> None:
        add = "atomic_fetch_add_explicit(&{}, x[t], memory_order_relaxed);"
        total = run(T + add.format("out[0]"), atomic_outputs=True, init_value=0, threadgroup=16)
        assert total[0].item() == 4 * sum(range(16))  # four threadgroups, and `t` counts within each
        source = T + "threadgroup atomic<float> n;\nif (t == 0) n.mr_value = 0;\n" + add.format("n") + "\nout[t] = 0;"
        assert fault(source).kind == "race"


class TestMemory:
    @pytest.mark.parametrize("options", [PLAIN, CHECKED], ids=["plain", "checked"])
    @pytest.mark.parametrize("offset", [1, -1, 1_000_000, -1_000_000_000, 2**31, 2**32 - 70])
    def test_an_index_outside_of_a_buffer_is_reported_however_far(self, offset: int, options: Options) -> None:
        inputs = [mx.arange(64).astype(mx.float32), mx.array([offset])]
        found = fault(T + "out[t] = x[t + pages[0]];", options=options, inputs=inputs)
        assert found.kind == "out of range" and " reads x[" in str(found)
        found = fault(T + "out[t + pages[0]] = x[t];", options=options, inputs=inputs)
        assert found.kind == "out of range" and " writes out[" in str(found)

    def test_the_checks_see_the_first_element_behind_the_end(self) -> None:
        found = fault(T + "out[t] = x[t + 1];", inputs=[mx.zeros((62,))], num_threads=62)
        assert "thread (61, 0, 0) of threadgroup (0, 0, 0) reads x[62], and valid are 0 to 61" in str(found)

    def test_a_line_in_the_header_is_named(self) -> None:
        header = "// helpers\nfloat next(const device float* p, uint i) {\n  return p[i + 1];\n}\n"
        assert "header line 3 `return p[i + 1];`" in str(fault(T + "out[t] = next(x, t);", header=header))

    def test_an_index_of_a_private_or_shared_array(self) -> None:
        private = fault(T + "float a[4] = {0, 0, 0, 0};\na[t] = 1;\nout[t] = a[0];")
        assert private.kind == "index of a fixed array"
        assert "line 3" in str(private) and "thread (4, 0, 0)" in str(private) and "index 4" in str(private)
        shared = fault(T + "threadgroup float a[2][8];\na[1][t] = 1;\nout[t] = 0;")
        assert "takes index 8 of an array of type `float[8]`" in str(shared)

    def test_a_pointer_gone_astray(self) -> None:
        for options in (PLAIN, CHECKED):
            assert fault(T + "out[t] = *(device float*)(ulong(t) + 64);", options=options).kind == "wild address"

    def test_more_threadgroup_memory_than_there_is(self) -> None:
        source = T + "threadgroup float a[4096];\nthreadgroup half b[8193];\na[t] = b[t] = 0;\nout[t] = 0;"
        found = fault(source)
        assert "source line 3" in str(found)
        assert "`b` brings the threadgroup to 32770 bytes, and it has 32768" in str(found)

    def test_private_memory_without_end(self) -> None:
        source = T + "volatile float a[100000];\nfor (int i = 0; i < 100000; i++) a[i] = 0;\nout[t] = a[t];"
        assert fault(source, options=PLAIN).kind == "stack overflow"

    def test_an_unwritten_output_is_reported_unless_it_has_an_init_value(self) -> None:
        source = T + "if (t < 60) out[t] = 1;"
        assert "4 of 64 elements of output `out` were never written, the first is out[60]" in str(fault(source))
        assert mx.isnan(run(source, options=PLAIN)[63]).item()
        assert run(source, init_value=7)[63].item() == 7

    def test_reading_an_output_before_it_is_written(self) -> None:
        assert fault(T + "out[t] += x[t];").kind == "uninitialised memory"
        assert run(T + "out[t] += x[t];", init_value=1)[3].item() == 4


class TestControlFlow:
    def test_two_different_barriers(self) -> None:
        source = T + (
            "if (t < 40) {\n  threadgroup_barrier(mem_flags::mem_none);\n} else {\n"
            "  threadgroup_barrier(mem_flags::mem_none);\n}\nout[t] = 0;"
        )
        found = fault(source, options=PLAIN)
        assert found.kind == "two barriers at once"
        assert "line 5" in str(found) and "at the one in source line 3" in str(found)

    def test_a_simd_operation_that_some_lanes_miss(self) -> None:
        found = fault(
            T + "if (t % 32 < 16)\n  out[t] = simd_sum(x[t]);\nthreadgroup_barrier(mem_flags::mem_none);", options=PLAIN
        )
        assert found.kind == "SIMD operation under divergent flow"
        assert "lane 0 waits here at simd_sum, and lane 16" in str(found)
        assert "threadgroup_barrier in source line 4" in str(found)

    def test_two_different_simd_operations(self) -> None:
        source = T + "if (t % 32 < 16) out[t] = simd_sum(x[t]);\nelse out[t] = simd_max(x[t]);"
        assert "lane 16 of the same SIMD group at simd_max in source line 3" in str(fault(source, options=PLAIN))

    def test_lanes_that_have_returned_do_not_take_part(self) -> None:
        source = T + "out[t] = 0;\nif (t % 32 >= 16) return;\nout[t] = simd_sum(x[t]);"
        assert run(source)[0].item() == sum(range(16))

    def test_the_value_of_a_lane_that_is_not_there(self) -> None:
        returned = fault(T + "if (t % 32 >= 16) return;\nout[t] = simd_shuffle(x[t], 20);", options=PLAIN)
        assert "lane 0 asks for the value of lane 20, which has returned already" in str(returned)
        missing = fault(T + "out[t] = simd_shuffle_xor(x[t], 16);", num_threads=20, options=PLAIN)
        assert "lane 4 asks for the value of lane 20, which does not exist" in str(missing)

    def test_an_endless_loop_ends(self) -> None:
        source = T + "volatile int go = 1;\nwhile (go) {}\nout[t] = 0;"
        assert fault(source, options=Options(check=False, timeout_s=0.2)).kind == "timeout"

    def test_ctrl_c_reaches_a_running_kernel(self) -> None:
        source = T + "volatile float go = x[0];\nwhile (go == 1) {}\nout[t] = x[t];"
        assert run(source)[5].item() == 5  # compiled
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run(source, inputs=[mx.ones((64,))])
        timer.join()
        assert run(source)[5].item() == 5

    def test_a_spin_lock_is_a_timeout(self) -> None:
        source = T + (
            "threadgroup atomic<int> flag;\nif (t == 0) atomic_store_explicit(&flag, 0, memory_order_relaxed);\n"
            "threadgroup_barrier(mem_flags::mem_threadgroup);\n"
            "if (t == 63) atomic_store_explicit(&flag, 1, memory_order_relaxed);\n"
            "while (!atomic_load_explicit(&flag, memory_order_relaxed)) {}\nout[t] = 0;"
        )
        assert fault(source, options=Options(timeout_s=0.2)).kind == "timeout"

    def test_an_integer_division_by_zero(self) -> None:
        found = fault(T + "int zero = int(t) - 5;\nout[t] = 7 / zero;")
        assert found.kind == "division by zero" and "thread (5, 0, 0)" in str(found)


class TestTexts:
    def test_a_syntax_error_has_the_learners_line_number(self) -> None:
        with pytest.raises(KernelCompileError, match=r"`k` does not compile:\nsource line 3: .*unknown_thing"):
            run(T + "\nout[t] = unknown_thing;")

    def test_a_float_is_no_bfloat_without_a_cast(self) -> None:
        with pytest.raises(KernelCompileError, match="source line 2"):
            run(T + "out[t] = x[t] * 2;", output_dtype=mx.bfloat16)

    def test_the_header_reserves_no_threadgroup_memory(self) -> None:
        header = "float f() {\n  threadgroup float a[4];\n  return a[0];\n}"
        with pytest.raises(KernelCompileError, match=r"header line 2: `threadgroup float a`"):
            run(T + "out[t] = f();", header=header)

    def test_threadgroup_memory_has_no_initial_value(self) -> None:
        with pytest.raises(KernelCompileError, match=r"line 2: threadgroup variable `n` has an initial value"):
            run(T + "threadgroup float n = 0;\nout[t] = n;")

    def test_the_c_plus_plus_library_is_not_there(self) -> None:
        with pytest.raises(KernelCompileError, match=r"header line 1: .*cmath"):
            run(T + "out[t] = 0;", header="#include <cmath>\n")

    def test_metals_own_headers_are(self) -> None:
        assert run(T + "out[t] = x[t];", header="#include <metal_stdlib>\nusing namespace metal;\n")[5].item() == 5


def test_three_hundred_faults_leave_a_process_that_works() -> None:
    """A dead kernel in a notebook would be worse than any wrong result."""
    for i in range(100):
        options = CHECKED if i % 2 else PLAIN
        assert fault(T + "out[t] = x[t + 1];", options=options).kind == "out of range"
        assert fault(T + "((device float*)x)[t] = 1;\nout[t] = x[t];", options=options).kind == "write to an input"
        assert fault(T + "out[t] = *(device float*)(ulong(t) + 64);", options=options).kind == "wild address"
    assert run(T + "out[t] = x[t];")[63].item() == 63
