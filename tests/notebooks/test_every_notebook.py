"""`make test` compares every notebook, in fast mode, with an end in sight."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from labs.kit.parameters import checkout

NOTEBOOKS = sorted((checkout() / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def command() -> str:
    """The line of `make test` that runs pytest."""
    environment = {"PATH": os.environ["PATH"]}  # not a MAKEFLAGS of the make that may be running this test
    dry = subprocess.run(
        ["make", "--dry-run", "test"], cwd=checkout(), env=environment, capture_output=True, text=True, check=True
    )
    (line,) = [line for line in dry.stdout.replace("\\\n", " ").splitlines() if "pytest" in line]
    return line


@pytest.fixture(scope="module")
def compared(command: str) -> Counter[str]:
    """How many cells of each notebook this line compares."""
    assert re.search(r"-m pytest tests notebooks --nbval ", command)
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--nbval", "notebooks"],
        cwd=checkout(),
        capture_output=True,
        text=True,
    )
    return Counter(re.findall(r"^notebooks/(\S+)\.ipynb::", listed.stdout, re.MULTILINE))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_code_cell_of_a_notebook_is_run_and_compared(path: Path, compared: Counter[str]) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert compared[path.stem] == len(cells)


def test_no_file_is_compared_that_is_no_notebook_of_the_course(compared: Counter[str]) -> None:
    assert sorted(compared) == [path.stem for path in NOTEBOOKS]


def test_the_comparison_is_fast_and_strict_and_of_the_default_model_alone(command: str) -> None:
    assert "LAB_FAST=1 " in command and "LAB_MODEL= " in command and "LAB_BASE_URL= " in command
    assert "--nbval-lax" not in command


def test_a_cell_that_hangs_is_ended_before_pytest_gives_up_on_it(command: str) -> None:
    project = (checkout() / "pyproject.toml").read_text(encoding="utf-8")
    limit_s = int(re.findall(r"^timeout = (\d+)", project, re.MULTILINE)[0])
    assert 0 < int(re.findall(r"--nbval-cell-timeout=(\d+)", command)[0]) < limit_s
