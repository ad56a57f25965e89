"""The learner's own copies, in `mylabs/`. They are made once and never written again by the course."""

from __future__ import annotations

import os
from pathlib import Path

from labs.kit.exercises.lab import Lab, LabError
from labs.kit.parameters import checkout


def default_folder() -> Path:
    """`MYLABS` of the environment, else `mylabs` at the top of the checkout, else in the current folder."""
    if chosen := os.environ.get("MYLABS"):
        return Path(chosen).expanduser().absolute()
    top = checkout()
    return (top if (top / "pyproject.toml").is_file() else Path.cwd()) / "mylabs"


def exercise_of(lab: Lab, folder: Path) -> Path:
    return folder / lab.key / "exercise.py"


def start(lab: Lab, folder: Path) -> tuple[Path, bool]:
    """Copy the stub, unless there is a file already; returns its path, and whether it is new. Raises LabError."""
    path = exercise_of(lab, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(lab.exercise.read_text(encoding="utf-8"))
    except FileExistsError:
        if path.is_file():
            return path, False
        raise LabError(f"{path} is there and is no file: move it away, or choose another --folder") from None
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}") from None
    return path, True
