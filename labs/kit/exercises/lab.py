"""The labs of the course: folders `labs/NN_name`, and what their files say of them."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labbook.errors import UsageError
from labs.kit.exercises.loading import load_files
from labs.kit.exercises.part import Answer, Part

MakeComponent = Callable[[Answer, Any], Any]
"""An answer and an EngineConfig make a component."""

LABS = Path(__file__).resolve().parents[2]
NUM_HINTS = 3

_FOLDER = re.compile(r"(\d\d)_([a-z_]+)")
_FACTS = re.compile(
    r"^Difficulty (?P<difficulty>[1-5]) of 5 · importance (?P<importance>[1-5]) of 5 · (?P<minutes>\d+) minutes"
    r" · about (?P<lines>\d+) lines$",
    re.MULTILINE,
)
_TITLE = re.compile(r"^# Lab (\d\d): (.+)$", re.MULTILINE)


class LabError(UsageError):
    """A lab or a part that does not exist, or a lab folder that is incomplete; the message says which are there."""


@dataclass(frozen=True)
class Lab:
    """One folder. `number` is "01" to "12"; `minutes` and `lines` are about what a first try takes."""

    folder: Path
    number: str
    name: str
    title: str
    difficulty: int
    importance: int
    minutes: int
    lines: int

    @property
    def key(self) -> str:
        """As the folder is called, in mylabs and in the labbook: "03_eviction"."""
        return self.folder.name

    @property
    def exercise(self) -> Path:
        return self.folder / "exercise.py"

    @property
    def solution(self) -> Path:
        return self.folder / "solution.py"

    @property
    def wrong_answers(self) -> list[Path]:
        """Each replaces one thing in the solution: `load_files([lab.solution, wrong], name)`."""
        return sorted((self.folder / "wrong").glob("*.py"))

    @property
    def example_labbook(self) -> Path | None:
        """Records that the solution and the wrong answers refer to, where a lab is about records."""
        path = self.folder / "example" / "labbook.md"
        return path if path.is_file() else None

    @functools.cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(self._checks.PARTS)

    @property
    def components(self) -> dict[str, MakeComponent]:
        """What of the answer can take a place in the real engine, by the name of the place; empty for most labs."""
        return getattr(self._checks, "COMPONENTS", {})

    @functools.cached_property
    def _checks(self) -> types.ModuleType:
        return load_files([self.folder / "check.py"], f"lab_{self.number}_check")

    @functools.cached_property
    def hints(self) -> list[str]:
        """Three steps: where to look, what to think of, how the code goes."""
        text = (self.folder / "hints.md").read_text(encoding="utf-8")
        return [step.strip() for step in re.split(r"^## \d.*$", text, flags=re.MULTILINE)[1:]]

    def part_of(self, names: set[str]) -> Part | None:
        """The part that asks for exactly these names."""
        return next((part for part in self.parts if set(part.names) == names), None)


@functools.cache
def all_labs(folder: Path = LABS) -> tuple[Lab, ...]:
    """Every lab, in order. Raises LabError for a folder that is called like a lab and is none."""
    return tuple(_read(path) for path in sorted(folder.iterdir()) if path.is_dir() and _FOLDER.fullmatch(path.name))


def find_lab(asked: str, folder: Path = LABS) -> Lab:
    """The lab of a number ("3", "03"), a name ("eviction") or a folder ("03_eviction"). Raises LabError."""
    labs = all_labs(folder)
    for lab in labs:
        if asked.strip().rstrip("/") in (lab.number, lab.number.lstrip("0"), lab.name, lab.key):
            return lab
    raise LabError(f"there is no lab {asked!r}: choose from {', '.join(lab.key for lab in labs)}")


def _read(path: Path) -> Lab:
    missing = [
        name
        for name in ("README.md", "exercise.py", "check.py", "solution.py", "hints.md", "wrong")
        if not (path / name).exists()
    ]
    if missing:
        raise LabError(f"the lab {path.name} lacks {', '.join(missing)}")
    readme = (path / "README.md").read_text(encoding="utf-8")
    title, facts = _TITLE.search(readme), _FACTS.search(readme)
    if title is None or facts is None:
        raise LabError(f"the README of {path.name} lacks its title or the line that begins with 'Difficulty'")
    number, name = path.name.split("_", 1)
    return Lab(path, number, name, title[2], **{key: int(value) for key, value in facts.groupdict().items()})
