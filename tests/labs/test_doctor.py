"""`labs doctor` tells what is missing and the command that repairs it. The facts are injected, each fault is one."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from labs import cli
from labs.doctor import command, machine
from labs.doctor.check import Check
from labs.doctor.checks import checks
from labs.doctor.facts import Facts, Place
from labs.doctor.machine import Device, Kernel
from labs.doctor.needs import Need, lines_of_project, needs
from labs.kit.parameters import checkout

JUPYTERLAB = Need("jupyterlab", "jupyterlab>=4.4", "lab", "4.6.6", True)
RUFF = Need("ruff", "ruff>=0.15", "test", "0.17.6", True)
WELL = Facts(
    python="3.12.1",
    runs_with=".venv/bin/python",
    distribution="0.1.0",
    course=(JUPYTERLAB,),
    further=(RUFF,),
    constraints="constraints.txt",
    kernel=Kernel("/env/bin/python", "/env/share/jupyter/kernels/python3", True),
    jupyter="/env/bin/jupyter",
    jupyter_is_ours=True,
    widgets_extension="5.0.16",
    device=Device("Linux x86_64 CPU, OpenBLAS 0.3.33", True, "OpenBLAS 0.3.33"),
    has_nvidia=False,
    home=Place("/home/me/.cache/minivllm", "", 20_000),
    has_model=True,
    labbook=Place("/home/me/lab/labbook.md"),
    compiler="/usr/bin/g++, g++ 12",
    clang="/usr/bin/clang++, clang 14",
    chromium="/usr/bin/chromium, Chromium 140",
)
SLOW = Device("Linux CPU", True, "MLX's reference BLAS, which is slow", True, "no usable OpenBLAS found")
OFF = replace(SLOW, blas="MLX's reference BLAS, which is slow (MINIVLLM_BLAS=off)", advice="")
ELSEWHERE = Kernel("/usr/bin/python3", "/home/me/.local/share/jupyter/kernels/python3", False)
PIP = ".venv/bin/python -m pip install"

# What is changed, the check that then fails, a part of what it says, and its repair.
REQUIRED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "an old Python": ({"python": "3.10.4"}, "Python", "3.10.4", "make setup PYTHON="),
    "a package is missing": (
        {"course": (replace(JUPYTERLAB, installed=None, is_met=False),)},
        *("jupyterlab", "not installed, needs >=4.4", f"{PIP} -c constraints.txt 'jupyterlab>=4.4'"),
    ),
    "a package is too old": (
        {"course": (replace(JUPYTERLAB, installed="4.1.0", is_met=False),), "constraints": None},
        *("jupyterlab", "4.1.0, needs >=4.4", f"{PIP} 'jupyterlab>=4.4'"),
    ),
    "not installed itself": ({"distribution": None}, "prefix-cache-lab", "not installed", "make setup"),
    "no kernel": ({"kernel": Kernel(None)}, "kernel", "no kernel python3", "-m ipykernel install --sys-prefix"),
    "a kernel elsewhere": ({"kernel": ELSEWHERE}, "kernel", "starts /usr/bin/python3", "kernelspecapp remove python3"),
    "no widgets": ({"widgets_extension": None}, "front end", "lacks", "--force-reinstall --no-deps"),
    "no MLX": ({"device": Device(error="ImportError: libmlx.so")}, "device", "libmlx.so", "make clean setup"),
    "home not writable": (
        {"home": Place("/h", "/h cannot be written")},
        "MINIVLLM_HOME",
        "cannot be",
        "export MINIVLLM",
    ),
    "a full disk": ({"home": Place("/h", "", 50)}, "MINIVLLM_HOME", "50 MB free, and 100 MB", "export MINIVLLM_HOME="),
    "no room for a model": (
        {"home": Place("/h", "", 200), "has_model": False},
        *("MINIVLLM_HOME", "200 MB free, and 320 MB", "export MINIVLLM_HOME="),
    ),
    "no labbook": ({"labbook": Place("/l.md", "/l.md cannot be written")}, "labbook", "/l.md", "export LABBOOK="),
}
OPTIONAL: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a tool of developers": (
        {"further": (replace(RUFF, installed=None, is_met=False),)},
        *("ruff", "(extra test)", f"{PIP} -c constraints.txt 'ruff>=0.15'"),
    ),
    "jupyter elsewhere": (
        {"jupyter": "/usr/bin/jupyter", "jupyter_is_ours": False},
        *("jupyter", "/usr/bin/jupyter on PATH", "make lab"),
    ),
    "an idle GPU": ({"has_nvidia": True}, "device", "NVIDIA", "make setup ENGINE=cuda"),
    "a slow BLAS": ({"device": SLOW}, "BLAS", "no usable OpenBLAS found", "openblas"),
    "a BLAS turned off": ({"device": OFF}, "BLAS", "MINIVLLM_BLAS=off", "unset MINIVLLM_BLAS"),
    "no compiler": ({"compiler": None}, "C++ compiler", "not found", "install"),
    "no clang": ({"clang": None}, "clang", "address spaces", "install"),
    "no chromium": ({"chromium": None}, "chromium", "test-browser", "install"),
}


def failed(facts: Facts) -> dict[str, Check]:
    return {check.name: check for check in checks(facts) if not check.is_ok}


def changed(changes: Mapping[str, Any]) -> Facts:
    return replace(WELL, **changes)


def test_nothing_fails_where_everything_is_there() -> None:
    assert failed(WELL) == {}


@pytest.mark.parametrize("name", REQUIRED)
def test_what_the_course_needs_is_missed_and_its_repair_named(name: str) -> None:
    changes, check, said, repair = REQUIRED[name]
    found = failed(changed(changes))
    assert found[check].stops_the_course
    assert said in found[check].found and repair in found[check].repair


@pytest.mark.parametrize("name", OPTIONAL)
def test_what_is_optional_fails_and_stops_nothing(name: str) -> None:
    changes, check, said, repair = OPTIONAL[name]
    found = failed(changed(changes))
    assert list(found) == [check] and not found[check].stops_the_course
    assert said in found[check].found and repair in found[check].repair


def test_an_absent_model_is_no_fault_because_it_is_fetched() -> None:
    (model,) = [check for check in checks(changed({"has_model": False})) if check.name == "model"]
    assert model.is_ok and "fetched at first use" in model.found


def test_no_jupyter_on_the_path_is_no_fault_because_make_finds_its_own() -> None:
    assert failed(changed({"jupyter": None, "jupyter_is_ours": False})) == {}


def test_a_failed_check_without_a_repair_is_refused() -> None:
    with pytest.raises(ValueError, match="names no repair"):
        Check("BLAS", False, "slow")


def test_each_line_says_ok_or_fail_and_the_repair_stands_below() -> None:
    lines = list(command.as_lines(checks(changed({"clang": None, "widgets_extension": None}))))
    assert all(line.startswith(("[OK]  ", "[FAIL]", "   ")) for line in lines[:-2])
    place = next(number for number, line in enumerate(lines) if line.startswith("[FAIL] front end"))
    assert lines[place + 1].strip().startswith("repair: ")
    assert lines[-1] == "Repair first: front end. Optional and missing: clang."


@pytest.mark.parametrize(("changes", "status"), [({}, 0), ({"clang": None}, 0), ({"widgets_extension": None}, 1)])
def test_the_exit_status_is_1_when_something_required_fails(
    changes: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("labs.doctor.facts.gather", lambda: changed(changes))
    assert cli.main(["doctor", "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is (status == 0)
    assert all((one["repair"] is None) is one["ok"] for one in told["checks"])


def test_without_packaging_there_is_one_check_and_it_says_make_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> Facts:
        raise ModuleNotFoundError("No module named 'packaging'")

    monkeypatch.setattr("labs.doctor.facts.gather", nothing)
    (only,) = command.examine()
    assert only.stops_the_course and only.repair == "make setup"


def test_the_needs_are_those_of_pyproject_with_the_parts_of_the_engine() -> None:
    found = {need.name: need for need in needs(lines_of_project(checkout()), ["engine", "lab"])}
    assert {"requests", "mlx", "mlx-lm", "fastapi", "jupyterlab", "matplotlib", "psutil"} <= set(found)
    assert "prefix-cache-lab" not in found
    assert found["mlx-lm"].versions == "==0.32.2" and found["mlx-lm"].extra == "engine"
    assert all(need.is_met for need in found.values()), "this environment is one that make setup made"


def test_a_version_outside_of_what_is_asked_for_is_not_met() -> None:
    (new,) = needs({"": ["pytest>=9999"]}, [])
    (absent,) = needs({"": ["no-such-distribution-anywhere"]}, [])
    assert not new.is_met and new.installed and absent.installed is None and absent.versions == "any version"


def test_a_marker_of_another_system_asks_for_nothing() -> None:
    assert needs({"": ["pytest>=9999; sys_platform == 'cobol'"]}, []) == []


def test_a_program_beside_this_python_is_of_this_environment_and_one_in_a_folder_of_its_own_is_not() -> None:
    assert machine.is_of_this_environment(sys.executable)
    assert not machine.is_of_this_environment("/usr/games/python3")


def test_this_very_environment_has_a_kernel_a_front_end_and_a_device() -> None:
    assert machine.kernel().is_ours
    assert machine.widgets_extension()
    assert machine.device().error == ""
