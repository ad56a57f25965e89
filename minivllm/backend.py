"""MLX, imported the way this package needs it: `from minivllm.backend import mx, nn`.

Importing this module loads an OpenBLAS first where that matters (minivllm/blas.py).
"""

from __future__ import annotations

import platform
import sys
from functools import cache

from minivllm.blas import Blas, load_blas
from minivllm.memory import keep_freed_memory
from minivllm.probe import compile_verdict

keep_freed_memory()
blas: Blas = load_blas()

try:
    import mlx.core as mx
    import mlx.nn as nn
except ImportError as error:
    package = "mlx[cpu]" if sys.platform == "linux" else "mlx"
    also = ' (or "mlx[cuda]" for an NVIDIA GPU)' if sys.platform == "linux" else ""
    raise ImportError(
        f'MLX cannot be imported ({error}); install it with `pip install "{package}"`{also}. '
        "On Linux plain `mlx` has no backend."
    ) from error

__all__ = ["blas", "compile_works", "device", "is_cpu", "mx", "nn"]

is_cpu: bool = mx.default_device() == mx.Device(mx.cpu)


def _device() -> str:
    machine = f"{platform.system()} {platform.machine()}"
    if is_cpu:
        return f"{machine} CPU, {blas.description}"
    chip = mx.device_info().get("device_name", "unknown GPU")
    return f"{machine} {'Metal' if mx.metal.is_available() else 'CUDA'} GPU, {chip}"


device: str = _device()


@cache
def compile_works() -> bool:
    """Whether `mx.compile` may be used: always on a GPU; on a CPU it needs a C++ compiler at run time."""
    return not is_cpu or compile_verdict()
