"""What a lab asks for: parts, each with checks that run in order; the first that fails is what the learner is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOT_TOLD = object()
"""Nothing to show here; None is an answer like any other."""


class Wrong(AssertionError):
    """An answer does what it should not. `message` is one sentence; `drawing` shows the state, pages of two tokens.

    What the right answer would have been is shown for this one example (`expected`), never how to get there.
    """

    def __init__(
        self, message: str, *, expected: object = NOT_TOLD, actual: object = NOT_TOLD, drawing: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.actual = actual
        self.drawing = drawing


@dataclass(frozen=True)
class Answer:
    """What the learner wrote: `answer.page_key` is the object of that name."""

    objects: Mapping[str, Any]
    labbook: Path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.objects:
            raise AttributeError(f"the answer has no {name}")
        return self.objects[name]


@dataclass(frozen=True)
class Check:
    """One thing that must hold. `usual_cause` says what most often breaks it, without giving the answer away."""

    name: str
    run: Callable[[Answer], None]
    usual_cause: str


@dataclass(frozen=True)
class Part:
    """Functions or classes that are judged together, by name, and what is worth knowing once they are right."""

    names: tuple[str, ...]
    checks: tuple[Check, ...]
    why_it_matters: str

    @property
    def title(self) -> str:
        return ", ".join(self.names)
