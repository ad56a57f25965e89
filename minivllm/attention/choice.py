"""Which attention an engine gets: the Metal kernel on an Apple GPU, the portable path elsewhere, or what was asked."""

from __future__ import annotations

import os

from minivllm.attention.metal import MetalAttention
from minivllm.attention.paged_kernels import HEAD_SIZES
from minivllm.attention.portable import PortableAttention
from minivllm.backend import is_cpu, mx
from minivllm.cache.storage import KVStorage
from minivllm.config import ConfigError

RUNNER_VARIABLE = "MINIVLLM_METAL_RUNNER"


def choose_attention(attention: str, storage: KVStorage) -> MetalAttention | PortableAttention:
    """`attention` is the setting of that name. Raises `ConfigError` for a "metal" that cannot be had."""
    fits = storage.keys[0].shape[2] in HEAD_SIZES
    if attention == "metal" and not fits:
        raise ConfigError(
            f"attention='metal' has no kernel for head size {storage.keys[0].shape[2]}, only for "
            f"{', '.join(map(str, HEAD_SIZES))}: use attention='portable'"
        )
    if attention == "portable" or not fits:
        return PortableAttention(storage)
    if os.environ.get(RUNNER_VARIABLE) == "1":
        from minivllm.metal.runner import metal_kernel

        return MetalAttention(storage, metal_kernel)
    if mx.metal.is_available() and not is_cpu:
        return MetalAttention(storage)
    if attention == "metal":
        raise ConfigError(
            "attention='metal' needs an Apple GPU, and MLX sees none here: use attention='auto', or set "
            f"{RUNNER_VARIABLE}=1 to run the kernel on the CPU in the runner (slowly; for tests and for reading it)"
        )
    return PortableAttention(storage)
