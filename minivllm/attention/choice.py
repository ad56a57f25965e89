"""Which attention an engine gets: the paged kernel on an Apple GPU, the portable path elsewhere, or what was asked."""

from __future__ import annotations

import os

from minivllm.attention.metal import MetalAttention
from minivllm.attention.paged_kernels import HEAD_SIZES, MakeKernel
from minivllm.attention.portable import PortableAttention
from minivllm.backend import is_cpu, mx
from minivllm.cache.storage import KVStorage
from minivllm.config import ConfigError

RUNNER_VARIABLE = "MINIVLLM_METAL_RUNNER"


def choose_attention(attention: str, storage: KVStorage) -> MetalAttention | PortableAttention:
    """`attention` is the setting of that name. Raises `ConfigError` when this machine or model cannot have it."""
    make_kernel = _kernel_maker(attention)
    if make_kernel is None:
        return PortableAttention(storage)
    reason = _why_not(storage)
    if reason is None:
        return MetalAttention(storage, make_kernel)
    if attention == "auto":
        return PortableAttention(storage)
    raise ConfigError(f"attention={attention!r} {reason}: use attention='portable'")


def _why_not(storage: KVStorage) -> str | None:
    """Why the kernels cannot read this storage, or None."""
    if storage.has_two_precisions:
        return "reads pages of one precision, and quantized_kv_start keeps some in full precision"
    if storage.head_dim not in HEAD_SIZES:
        sizes = ", ".join(map(str, HEAD_SIZES))
        return f"has no kernel for head size {storage.head_dim}, only for {sizes}"
    return None


def _kernel_maker(attention: str) -> MakeKernel | None:
    """What makes the kernels, or None for the portable path."""
    on_metal = mx.metal.is_available() and not is_cpu
    if attention == "portable":
        return None
    if attention == "cuda":
        return _cuda_maker(on_metal)
    if os.environ.get(RUNNER_VARIABLE) == "1":
        from minivllm.metal.runner import metal_kernel

        return metal_kernel
    if on_metal:
        return mx.fast.metal_kernel
    if attention == "metal":
        raise ConfigError(
            "attention='metal' needs an Apple GPU, and MLX sees none here: use attention='auto', or set "
            f"{RUNNER_VARIABLE}=1 to run the kernel on the CPU in the runner (slowly; for tests and to learn from)"
        )
    return None


def _cuda_maker(on_metal: bool) -> MakeKernel:
    if is_cpu or on_metal:
        raise ConfigError("attention='cuda' needs an NVIDIA GPU, and MLX sees none here: use attention='auto'")
    from minivllm.metal.cuda import cuda_kernel

    return cuda_kernel
