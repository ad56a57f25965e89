"""Everything that the doctor looks at, gathered once; no model is loaded and no notebook started."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from labbook.book import Labbook
from labbook.errors import LabbookError
from labs.doctor import machine
from labs.doctor.needs import DISTRIBUTION, Need, lines_of_project, needs, version_of
from labs.kit.parameters import DEFAULT_MODEL, checkout, default_labbook
from minivllm.home import HomeError, home

COURSE_EXTRAS = ("plot", "lab")
# Never beside what is installed, or installed when one example asks for it.
NOT_ASKED_FOR = ("engine-common", "engine", "cuda", "router")
_CUDA_BUILDS = ("mlx-cuda-12", "mlx-cuda-13")


@dataclass(frozen=True)
class Place:
    """A file or folder that is written to. `problem` is empty when it can be."""

    path: str
    problem: str = ""
    free_mb: int = 0


@dataclass(frozen=True)
class Facts:
    """`python` is the version, `runs_with` the program; `course` and `further` are what extras need."""

    python: str
    runs_with: str
    distribution: str | None
    course: tuple[Need, ...]
    further: tuple[Need, ...]
    constraints: str | None
    kernel: machine.Kernel
    jupyter: str | None
    jupyter_is_ours: bool
    widgets_extension: str | None
    device: machine.Device
    has_nvidia: bool
    home: Place
    has_model: bool
    labbook: Place
    compiler: str | None
    clang: str | None
    chromium: str | None


def gather() -> Facts:
    with ThreadPoolExecutor() as pool:  # each waits for a program
        device = pool.submit(machine.device)
        compiler = pool.submit(machine.program, _compilers(), zig=True)
        clang = pool.submit(machine.program, machine.CLANGS, zig=True)
        chromium = pool.submit(machine.program, machine.CHROMIUMS)
        course, further = _packages()
        jupyter = shutil.which("jupyter")
        return Facts(
            python=platform.python_version(),
            runs_with=_shown(sys.executable),
            distribution=version_of(DISTRIBUTION),
            course=course,
            further=further,
            constraints=_constraints(),
            kernel=machine.kernel(),
            jupyter=jupyter,
            jupyter_is_ours=jupyter is not None and machine.is_of_this_environment(jupyter),
            widgets_extension=machine.widgets_extension(),
            device=device.result(),
            has_nvidia=shutil.which("nvidia-smi") is not None,
            home=_home(),
            has_model=_has_model(),
            labbook=_labbook(),
            compiler=compiler.result(),
            clang=clang.result(),
            chromium=chromium.result(),
        )


def _packages() -> tuple[tuple[Need, ...], tuple[Need, ...]]:
    """What the course needs, and what the other extras need beyond that."""
    lines = lines_of_project(checkout())
    extras = [_engine_extra(), *COURSE_EXTRAS]
    others = [extra for extra in lines if extra and extra not in (*extras, *NOT_ASKED_FOR)]
    course = needs(lines, extras)
    known = {need.name for need in course}
    return tuple(course), tuple(need for need in needs(lines, others) if need.name not in known)


def _engine_extra() -> str:
    return "cuda" if any(version_of(build) for build in _CUDA_BUILDS) else "engine"


def _compilers() -> tuple[str, ...]:
    chosen = os.environ.get("MINIVLLM_METAL_CXX")
    return (chosen,) if chosen else machine.COMPILERS


def _constraints() -> str | None:
    path = checkout() / "constraints.txt"
    return _shown(str(path)) if path.is_file() else None


def _home() -> Place:
    try:
        folder = home()
    except HomeError as error:
        return Place("MINIVLLM_HOME", str(error))
    there = next(place for place in (folder, *folder.parents) if place.exists())
    problem = "" if os.access(there, os.W_OK) and there.is_dir() else f"{there} cannot be written"
    return Place(str(folder), problem, shutil.disk_usage(there).free // 1_000_000)


def _has_model() -> bool:
    try:
        return (home() / "models" / DEFAULT_MODEL / "config.json").is_file()
    except HomeError:
        return False


def _labbook() -> Place:
    path = default_labbook()
    try:
        Labbook(path).check_writable_place()
    except LabbookError as error:
        return Place(str(path), str(error))
    return Place(str(path))


def _shown(path: str) -> str:
    """Relative to the current folder where it lies in it: as one would type it."""
    whole = Path(path)
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else path
