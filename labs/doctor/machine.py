"""What only a look at the machine tells: programs, the device of MLX, the kernel that a notebook would start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.kit.parameters import checkout
from minivllm.metal.compiler import zig_program

CLANGS = ("clang++", *(f"clang++-{version}" for version in range(30, 13, -1)))
COMPILERS = ("clang++", "g++")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WIDGETS = Path("@jupyter-widgets", "jupyterlab-manager", "package.json")
_TIMEOUT_S = 20.0
# In a process of its own: a library that dies with an illegal instruction is an answer, and not the end.
_ENGINE = """
import json
from minivllm import backend
blas = backend.blas
print(json.dumps({"device": backend.device, "is_cpu": backend.is_cpu, "blas": blas.description, "advice": blas.advice,
                  "is_slow": backend.is_cpu and blas.path is None and blas.description != "MLX's own"}))
"""


@dataclass(frozen=True)
class Device:
    """What MLX computes on. `error` is why it cannot be imported; then the rest says nothing."""

    name: str = ""
    is_cpu: bool = True
    blas: str = ""
    is_slow: bool = False
    advice: str = ""
    error: str = ""


@dataclass(frozen=True)
class Kernel:
    """The kernel `python3`: the program that it starts (None: there is no such kernel), and where it is written so."""

    program: str | None
    folder: str = ""
    is_ours: bool = False


def device() -> Device:
    place = os.pathsep.join([str(checkout()), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", _ENGINE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, env={**os.environ, "PYTHONPATH": place}
        )
    except subprocess.TimeoutExpired:
        return Device(error=f"no answer within {_TIMEOUT_S:g} s")
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
        return Device(error=said[-1])
    told = json.loads(done.stdout.splitlines()[-1])
    return Device(told["device"], told["is_cpu"], told["blas"], told["is_slow"], told["advice"])


def kernel() -> Kernel:
    """By its kernel spec, in the way in which jupyter_client reads it; nothing is started."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ModuleNotFoundError:
        return Kernel(None)
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return Kernel(None)
    named = spec.argv[0]
    version = sys.version_info
    if named in ("python", f"python{version.major}", f"python{version.major}.{version.minor}"):
        named = sys.executable  # jupyter_client puts its own Python there
    program = shutil.which(named) or named
    return Kernel(program, spec.resource_dir, is_of_this_environment(program))


def is_of_this_environment(program: str) -> bool:
    """Whether a program lies beside this Python: a virtual environment has a folder of programs of its own."""
    return Path(program).parent.resolve() == Path(sys.executable).parent.resolve()


def widgets_extension() -> str | None:
    """The version of the part of ipywidgets that runs in JupyterLab."""
    try:
        from jupyter_core.paths import jupyter_path
    except ModuleNotFoundError:
        return None
    for folder in jupyter_path("labextensions"):
        if (Path(folder) / _WIDGETS).is_file():
            return str(json.loads((Path(folder) / _WIDGETS).read_text(encoding="utf-8"))["version"])
    return None


def program(names: Sequence[str], zig: bool = False) -> str | None:
    """The first of these programs that is here, with what it says of its version; with `zig`, else PyPI's ziglang."""
    path = next((path for path in map(shutil.which, names) if path), None)
    if path is None:
        inside = zig_program() if zig else None
        return f"{inside} (ziglang)" if inside else None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path} ({error})"
    said = done.stdout.strip().splitlines()
    return f"{path}, {said[0].strip()}" if said else path
