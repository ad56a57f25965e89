"""What runs a Metal kernel on this machine."""

from __future__ import annotations

from minivllm.attention.paged_kernels import MakeKernel
from minivllm.backend import is_cpu, mx
from minivllm.metal.compiler import find_compiler
from minivllm.metal.errors import CompilerMissing
from minivllm.metal.runner import metal_kernel


def kernel_maker() -> tuple[MakeKernel | None, str]:
    """What makes a kernel from its text, and where that then runs: the GPU of a Mac, else the runner on the CPU.

    None, and why, where neither is possible.
    """
    if mx.metal.is_available() and not is_cpu:
        return mx.fast.metal_kernel, "on the GPU of this Mac"
    try:
        find_compiler()
    except CompilerMissing as error:
        return None, f"skipped: the runner needs a C++ compiler. {error}"
    return metal_kernel, "on the CPU, in the runner, thread by thread and with all its checks"
