"""What became of one part of a lab."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["not attempted", "wrong", "crashed", "passed"]


@dataclass(frozen=True)
class Outcome:
    """`check` is the one that failed. `message` is a sentence; `detail` a drawing, or the learner's own traceback."""

    part: str
    kind: Kind
    check: str | None = None
    message: str = ""
    expected: str | None = None
    actual: str | None = None
    detail: str = ""
    usual_cause: str = ""
    why_it_matters: str = ""
    printed: str = ""
    """The end of what the learner's code printed meanwhile."""

    @property
    def passed(self) -> bool:
        return self.kind == "passed"

    def as_dict(self) -> dict[str, Any]:
        """For a record: what happened, without the teaching text."""
        return {"part": self.part, "outcome": self.kind, "check": self.check, "message": self.message}

    def as_json(self) -> dict[str, Any]:
        """For `--json`: all that a person would read."""
        told = {name: value for name, value in asdict(self).items() if name not in ("part", "kind", "check", "message")}
        return {**self.as_dict(), **told}

    def _ipython_display_(self) -> None:
        """`check(...)` has printed it; as the value of a cell it shows nothing more."""
