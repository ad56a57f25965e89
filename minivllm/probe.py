"""What works on this machine, tried in a child process so that a crash is an answer and not the end."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from minivllm.home import remembered

PROBE_TIMEOUT_S = 60.0

# Integers below 2**24 are exact in float32, so a right product is exactly right. The sizes need wide kernels.
_SGEMM = """
import ctypes, json, sys
path, = sys.argv[1:]
lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
sgemm = lib.cblas_sgemm
lib.openblas_get_config.restype = ctypes.c_char_p
config = lib.openblas_get_config().decode()
m, n, k = 70, 90, 130
a = [(7 * i + 3) % 11 - 5 for i in range(m * k)]
b = [(5 * i + 1) % 13 - 6 for i in range(n * k)]
floats = lambda values: (ctypes.c_float * len(values))(*values)
c = floats([0.0] * (m * n))
i32, f32 = ctypes.c_int, ctypes.c_float
sizes = i32(m), i32(n), i32(k)
sgemm(i32(101), i32(111), i32(112), *sizes, f32(1), floats(a), i32(k), floats(b), i32(k), f32(0), c, i32(n))
right = all(c[i * n + j] == sum(x * y for x, y in zip(a[i * k:i * k + k], b[j * k:j * k + k]))
            for i in range(m) for j in range(n))
wide = "USE64BITINT" in config
reason = "wrong product" if not right else "64-bit integers" if wide else None
print(json.dumps({"version": config, "reason": reason}))
"""

_COMPILE = """
import mlx.core as mx
x = mx.ones((8,))
y = mx.compile(lambda x: mx.exp(x) * x + 1)(x)
mx.eval(y)
assert abs(y[0].item() - 3.718282) < 1e-4
"""


def openblas_verdict(path: Path) -> dict[str, str | None]:
    """`version` (OpenBLAS's own words) and `reason` (None if it may be used) of the library at `path`."""
    stat = path.stat()
    key = f"{path.absolute()} {stat.st_mtime_ns} {stat.st_size} {_cpu()}"
    verdict: dict[str, str | None] = remembered("blas-verdicts", key, lambda: _try_openblas(path), keep=_is_final)
    return verdict


def _is_final(verdict: dict[str, str | None]) -> bool:
    """A library that could not be loaded lacks another one, which may be there tomorrow: ask again then."""
    return not (verdict["reason"] or "").startswith("OSError")


def compile_verdict() -> bool:
    """Whether `mx.compile` works on the CPU here: MLX runs g++ for it, and a plain machine has none."""
    key = f"mlx {importlib.metadata.version('mlx')} g++ {shutil.which('g++')} {sys.executable} {_cpu()}"
    return bool(remembered("compile-verdicts", key, _try_compile))


def _try_compile() -> bool:
    try:
        return _child(_COMPILE).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _try_openblas(path: Path) -> dict[str, str | None]:
    try:
        child = _child(_SGEMM, str(path))
    except subprocess.TimeoutExpired:
        return {"version": None, "reason": f"no answer within {PROBE_TIMEOUT_S:.0f} s"}
    if child.returncode < 0:
        return {"version": None, "reason": f"a small product ended with signal {-child.returncode}"}
    if child.returncode:
        return {"version": None, "reason": (child.stderr.strip().splitlines() or ["no message"])[-1]}
    verdict: dict[str, str | None] = json.loads(child.stdout.splitlines()[-1])
    return verdict


def _child(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter that leaves no core dump."""
    no_core = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    command = [sys.executable, "-c", no_core + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, cwd=os.path.sep)


def _cpu() -> str:
    """A name for this CPU and its instruction sets; the same home may be mounted on several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    facts = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
