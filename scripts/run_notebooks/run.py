"""What one run of one notebook came to, and its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from labbook.record import Record, environment_stamp, now_iso
from labs.kit.course_record import course_record
from labs.kit.parameters import Parameters
from scripts.run_notebooks.settings import shown_base_url

EXPERIMENT = "notebook-run"
Status = Literal["passed", "failed", "kernel died", "timed out"]


@dataclass(frozen=True)
class FirstError:
    """`cell` is the id of the cell that was running; None when none had begun."""

    cell: str | None
    name: str
    message: str

    def __str__(self) -> str:
        return f"in cell {self.cell}: {self.name}: {self.message}" if self.cell else f"{self.name}: {self.message}"


@dataclass(frozen=True)
class Run:
    """`cell_seconds` by cell id, in the order of the notebook; `added` are the experiments of the records it added."""

    notebook: str
    status: Status
    seconds: float
    cell_seconds: Mapping[str, float]
    first_error: FirstError | None = None
    added: Sequence[str] = ()
    ended_at: str = field(default_factory=now_iso)

    @property
    def has_passed(self) -> bool:
        return self.status == "passed"

    def slowest_cells(self, number: int) -> list[tuple[str, float]]:
        return sorted(self.cell_seconds.items(), key=lambda one: one[1], reverse=True)[:number]

    def record(self, parameters: Parameters) -> Record:
        error = self.first_error
        measured = course_record(
            EXPERIMENT,
            notebook=self.notebook,
            label=f"{self.notebook}, {mode(parameters)}, {self.status}",
            mode=mode(parameters),
            parameters={"model": parameters.model_or_only, "base_url": shown_base_url(parameters)},
            status=self.status,
            seconds=round(self.seconds, 2),
            cell_seconds={cell: round(seconds, 3) for cell, seconds in self.cell_seconds.items()},
            first_error=error and {"cell": error.cell, "name": error.name, "message": error.message},
            records_added=len(self.added),
            records_added_by_experiment=dict(Counter(self.added)),
            environment=environment_stamp(),
        )
        return {**measured, "recorded_at": self.ended_at}


def mode(parameters: Parameters) -> str:
    return "fast" if parameters.fast else "full"
