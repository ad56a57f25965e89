"""scripts/setup-python.sh finds a Python that is new enough, or says in one sentence that there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OLD = """#!/bin/sh
echo "3.10 $0"
exit 1
"""


def fake(folder: Path, name: str, text: str) -> Path:
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)
    return program


def find(root: Path, path: Path, chosen: str = "") -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(root / "scripts" / "setup-python.sh"), chosen]
    return subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True)


def test_a_python_that_is_too_old_is_named_with_its_version(root: Path, tmp_path: Path) -> None:
    fake(tmp_path, "python3", OLD)
    result = find(root, tmp_path)
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr == (
        "Error: no Python 3.11 or newer is on PATH (python3 is 3.10): "
        "install one, or name it as in 'make PYTHON=/path/to/python3.12'.\n"
    )


def test_no_python_at_all_is_one_sentence_too(root: Path, tmp_path: Path) -> None:
    result = find(root, tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: no Python 3.11 or newer is on PATH: install one")
    assert result.stderr.count("\n") == 1


def test_an_old_python3_is_passed_over_for_a_newer_one_beside_it(root: Path, tmp_path: Path) -> None:
    fake(tmp_path, "python3", OLD)
    newer = fake(tmp_path, "python3.13", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    result = find(root, tmp_path)
    assert newer.is_file() and result.returncode == 0
    assert os.access(result.stdout.strip(), os.X_OK)


def test_a_chosen_python_is_not_replaced_by_another(root: Path, tmp_path: Path) -> None:
    fake(tmp_path, "python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    fake(tmp_path, "python3.10", OLD)
    result = find(root, tmp_path, "python3.10")
    assert result.returncode == 1
    assert "PYTHON=python3.10 is not a Python 3.11 or newer (python3.10 is 3.10)" in result.stderr


@pytest.mark.parametrize("name", ["no-such-python", "/no/such/python"])
def test_a_chosen_python_that_is_not_there_is_named(root: Path, tmp_path: Path, name: str) -> None:
    result = find(root, tmp_path, name)
    assert result.returncode == 1 and f"PYTHON={name} is not a Python 3.11 or newer: name one" in result.stderr


def test_a_path_with_a_space_is_one_path(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my programs"
    folder.mkdir()
    chosen = fake(folder, "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert find(root, tmp_path, str(chosen)).returncode == 0


def test_a_virtual_environment_stands_for_the_python_it_was_made_from(root: Path, tmp_path: Path) -> None:
    environment = tmp_path / "activated"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    found = find(root, environment / "bin").stdout.strip()
    assert found and not found.startswith(str(environment))
