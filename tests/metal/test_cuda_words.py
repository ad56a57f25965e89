"""The CUDA sibling: Metal's words spelled in CUDA, checked without a GPU.

The header is expanded by a preprocessor, what it wrote is spelled in Metal again word for word, and the runner runs
that: sums over lanes by CUDA's exchanges, CUDA's barrier, shared memory and thread numbers. Where there is an nvcc, it
compiles the text as MLX would hand it over.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from minivllm.attention.paged_kernels import PagedKernels, kernel_text
from minivllm.backend import mx
from minivllm.metal import cuda
from minivllm.metal.runner import metal_kernel
from tests.metal.paged_case import largest_error, make_case, quantized

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ expands the header and builds kernels")

METAL_FOR_CUDA = {
    r"__shfl_xor_sync\(0xffffffff, ": "simd_shuffle_xor(",
    r"__syncthreads\(\)": "threadgroup_barrier(mem_flags::mem_threadgroup)",
    r"__int_as_float\(0x7f800000\)": "__builtin_inff()",
    r"__shared__": "threadgroup",
    r"__device__": "",
    r"\bblockIdx\b": "threadgroup_position_in_grid",
    r"\bgridDim\b": "threadgroups_per_grid",
    r"\bthreadIdx\b": "thread_position_in_threadgroup",
    r"\bsimd_(sum|max)\b": r"warp_\1",
}
CUT = "/* the body begins here */"


def through_cuda(*, name: str, source: str, header: str, **arguments: Any) -> Any:
    """A kernel whose text went through cuda_words.h: what `mx.fast.cuda_kernel` would run, in the runner."""
    text = expanded(cuda.cuda_words() + header + CUT + source)
    for word, metal in METAL_FOR_CUDA.items():
        text = re.sub(word, metal, text)
    header, source = text.split(CUT)
    return metal_kernel(name=f"cuda_{name}", source=source, header=header, **arguments)


def expanded(text: str) -> str:
    command = ["g++", "-E", "-P", "-C", "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


@needs_compiler
def test_the_cuda_text_of_decode_and_merge_gives_the_answer() -> None:
    case = make_case((1, 17, 100), heads=6, kv_heads=2, head_dim=80)
    got = PagedKernels(through_cuda).decode(case.query_array, case.pages, case.page_tables, splits=3)
    assert largest_error(got, case) < 1e-5


@needs_compiler
def test_the_cuda_text_of_prefill_gives_the_answer_on_plain_and_on_quantized_pages() -> None:
    case = make_case((40,), rows=7, heads=6, kv_heads=2)
    kernels = PagedKernels(through_cuda)
    assert largest_error(kernels.prefill(case.query_array, case.pages, case.page_tables), case) < 1e-5
    case, pages = quantized(case, bits=4, group_size=32)
    assert largest_error(kernels.prefill(case.query_array, pages, case.page_tables), case) < 1e-5


def test_mlx_is_given_the_words_before_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(mx.fast, "cuda_kernel", lambda **arguments: given.update(arguments))
    cuda.cuda_kernel(name="k", input_names=["a"], output_names=["b"], source="s", header="#define X\n")
    assert given.pop("header") == cuda.cuda_words() + "#define X\n"
    assert given == {"name": "k", "input_names": ["a"], "output_names": ["b"], "source": "s"}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
def test_nvcc_accepts_the_text(tmp_path: Path) -> None:
    """Around the text, what MLX writes (mlx/backend/cuda/custom_kernel.cpp)."""
    arrays = {"queries": "__half", "keys": "uint32_t", "key_scales": "__half", "key_biases": "__half"}
    arrays |= {"values": "uint32_t", "value_scales": "__half", "value_biases": "__half"}
    arrays |= {"page_tables": "int", "context_lengths": "int"}
    constants = {"HEADS": 6, "KV_HEADS": 2, "HEAD_SIZE": 64, "PAGE_SIZE": 16, "SIMD_GROUPS": 4, "QUERIES_PER_GROUP": 4}
    constants |= {"BITS": 8, "QUANT_GROUP": 32}
    text = as_mlx_writes(kernel_text("prefill", constants), arrays, constants)
    (tmp_path / "kernel.cu").write_text(text, encoding="utf-8")
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-cubin", "-o", "/dev/null", str(tmp_path / "kernel.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def as_mlx_writes(text: dict[str, str], arrays: dict[str, str], constants: dict[str, int]) -> str:
    parameters = []
    for name, kind in arrays.items():
        parameters.append(f"const {kind}* {name}")
        if f"{name}_shape" in text["source"]:
            parameters.append(f"const __grid_constant__ Shape {name}_shape")
    parameters.append("__half* out")
    lines = [
        "#include <cuda_bf16.h>",
        "#include <cuda_fp16.h>",
        "#include <cuda/std/array>",
        "using Shape = cuda::std::array<int, 10>;",
        cuda.cuda_words() + text["header"],
        f"__global__ void kernel({', '.join(parameters)}) {{",
        *(f"constexpr int {name} = {value};" for name, value in constants.items()),
        "using T = __half;",
        text["source"],
        "}",
    ]
    return "\n".join(lines)
