"""The same kernels on an NVIDIA GPU: `cuda_kernel` in the place of `mx.fast.metal_kernel`.

MLX's CUDA kernels take the same arguments, and a header (cuda_words.h) spells Metal's words in CUDA. The text compiles
with nvcc; its arithmetic has been run only in the runner, so it is taken when asked for and never by "auto".
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from minivllm.backend import mx


def cuda_words() -> str:
    return files("minivllm.metal").joinpath("cuda_words.h").read_text(encoding="utf-8")


def cuda_kernel(*, header: str = "", **arguments: Any) -> Any:
    return mx.fast.cuda_kernel(header=cuda_words() + header, **arguments)
