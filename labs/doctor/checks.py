"""Facts judged: what is right, what is not, and the command that repairs it."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterator

from labs.doctor.check import Check
from labs.doctor.facts import Facts
from labs.doctor.needs import DISTRIBUTION, Need
from labs.kit.parameters import DEFAULT_MODEL

OLDEST_PYTHON = (3, 11)
_ROOM_FOR_MODEL_MB = 320  # while it is fetched and converted
_ROOM_FOR_CACHES_MB = 100


def checks(facts: Facts) -> list[Check]:
    """In the order in which one would repair."""
    return [
        _python(facts),
        *_packages(facts),
        _distribution(facts),
        _kernel(facts),
        _jupyter(facts),
        _widgets(facts),
        _device(facts),
        _blas(facts),
        _home(facts),
        _model(facts),
        _labbook(facts),
        *_programs(facts),
    ]


def _python(facts: Facts) -> Check:
    found = f"{facts.python} ({facts.runs_with})"
    is_new = tuple(int(part) for part in facts.python.split(".")[:2]) >= OLDEST_PYTHON
    return Check("Python", is_new, found, "make setup PYTHON=/path/to/python3.12")


def _packages(facts: Facts) -> Iterator[Check]:
    yield from (_package(facts, need, is_required=True) for need in facts.course)
    yield from (_package(facts, need, is_required=False) for need in facts.further)


def _package(facts: Facts, need: Need, is_required: bool) -> Check:
    found = f"{need.installed or 'not installed'}, needs {need.versions}"
    if not is_required:
        found += f" (extra {need.extra})"
    return Check(need.name, need.is_met, found, _pip(facts, need.requirement), is_required)


def _distribution(facts: Facts) -> Check:
    found = facts.distribution or "not installed: the commands labs, labbook and minivllm are missing"
    return Check(DISTRIBUTION, facts.distribution is not None, found, "make setup")


def _kernel(facts: Facts) -> Check:
    kernel = facts.kernel
    python = facts.runs_with
    if kernel.program is None:
        return Check("kernel", False, "no kernel python3", f"{python} -m ipykernel install --sys-prefix")
    if kernel.is_ours:
        return Check("kernel", True, "python3 starts this Python: kernel and server share one environment")
    found = f"python3 starts {kernel.program}, another environment than this one (so says {kernel.folder})"
    return Check("kernel", False, found, f"{python} -m jupyter_client.kernelspecapp remove python3")


def _jupyter(facts: Facts) -> Check:
    if facts.jupyter is None:
        return Check("jupyter", True, "not on PATH; make lab finds its own")
    if facts.jupyter_is_ours:
        return Check("jupyter", True, facts.jupyter)
    found = f"{facts.jupyter} on PATH is of another environment"
    return Check("jupyter", False, found, "make lab", is_required=False)


def _widgets(facts: Facts) -> Check:
    version = facts.widgets_extension
    repair = _pip(facts, "jupyterlab_widgets", "--force-reinstall", "--no-deps")
    missing = "JupyterLab lacks the part of ipywidgets that runs in it"
    return Check("front end", version is not None, f"widgets {version} in JupyterLab" if version else missing, repair)


def _device(facts: Facts) -> Check:
    device = facts.device
    if device.error:
        return Check("device", False, f"MLX cannot be imported: {device.error}", "make clean setup")
    if device.is_cpu and facts.has_nvidia:
        found = f"{device.name}; there is an NVIDIA GPU that it does not use"
        return Check("device", False, found, "make setup ENGINE=cuda", is_required=False)
    return Check("device", True, device.name)


def _blas(facts: Facts) -> Check:
    device = facts.device
    found = f"{device.blas}: {device.advice}" if device.advice else device.blas or "unknown, because MLX is not there"
    return Check("BLAS", bool(device.blas) and not device.is_slow, found, _faster_blas(facts), is_required=False)


def _faster_blas(facts: Facts) -> str:
    if "MINIVLLM_BLAS=off" in facts.device.blas:
        return "unset MINIVLLM_BLAS"
    return _pip(facts, "ngsolve-openblas") if platform.machine() == "x86_64" else "apt-get install libopenblas0"


def _home(facts: Facts) -> Check:
    needed_mb = _ROOM_FOR_CACHES_MB if facts.has_model else _ROOM_FOR_MODEL_MB
    place, repair = facts.home, "export MINIVLLM_HOME=/a/folder/with/space"
    if place.problem:
        return Check("MINIVLLM_HOME", False, place.problem, repair)
    found = f"{place.path}, {place.free_mb:,} MB free"
    if place.free_mb < needed_mb:
        return Check("MINIVLLM_HOME", False, f"{found}, and {needed_mb:,} MB are needed", repair)
    return Check("MINIVLLM_HOME", True, found)


def _model(facts: Facts) -> Check:
    return Check("model", True, f"{DEFAULT_MODEL}, " + ("here" if facts.has_model else "fetched at first use (93 MB)"))


def _labbook(facts: Facts) -> Check:
    place = facts.labbook
    return Check("labbook", not place.problem, place.problem or place.path, "export LABBOOK=/a/folder/labbook.md")


def _programs(facts: Facts) -> Iterator[Check]:
    for name, found, needed_for, package in (
        ("C++ compiler", facts.compiler, "the Metal kernel where there is no Apple GPU", "g++"),
        ("clang", facts.clang, "checking the address spaces of Metal kernels", "clang"),
        ("chromium", facts.chromium, "make test-browser", "chromium"),
    ):
        missing = f"not found; only needed for {needed_for}"
        yield Check(name, found is not None, found or missing, _install(package), is_required=False)


def _install(package: str) -> str:
    if sys.platform != "darwin":
        return f"apt-get install {package}"
    return "brew install --cask chromium" if package == "chromium" else "xcode-select --install"


def _pip(facts: Facts, requirement: str, *options: str) -> str:
    constraints = ["-c", facts.constraints] if facts.constraints else []
    return shlex.join([facts.runs_with, "-m", "pip", "install", *options, *constraints, requirement])
