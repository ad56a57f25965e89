"""How far a learner is: a table of the labs, and a figure of predictions and passes over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from labbook.book import Labbook
from labbook.figures import DrawnFigure, draw, finished
from labbook.record import Record
from labs.kit.exercises import history
from labs.kit.exercises.history import Standing
from labs.kit.table import text_table

PASSES = "parts passed"
_MARKS = {PASSES: "o", "predictions supported": "s", "predictions refuted or inconclusive": "x"}


def as_text(standings: Sequence[Standing]) -> str:
    rows = [
        [
            one.lab.key,
            f"{one.num_passed} of {len(one.lab.parts)}",
            one.num_tries,
            one.num_hints,
            "yes" if one.saw_solution else "no",
            (one.passed_at or "-")[:16],
        ]
        for one in standings
    ]
    table = text_table(["lab", "parts passed", "parts checked", "hints", "saw the solution", "passed at (UTC)"], rows)
    return f"{table}\n\n{sum(one.is_passed for one in standings)} of {len(standings)} labs passed."


def as_dict(standing: Standing) -> dict[str, Any]:
    return {
        "lab": standing.lab.key,
        "parts": len(standing.lab.parts),
        "parts_passed": standing.num_passed,
        "tries": standing.num_tries,
        "hints": standing.num_hints,
        "saw_solution": standing.saw_solution,
        "passed_at": standing.passed_at,
    }


def over_time(labbook: Path, path: Path | None = None) -> DrawnFigure:
    """Passes of parts and verdicts on predictions, counted up over time."""
    records = Labbook(labbook).records() if labbook.exists() else []
    moments = {name: sorted(_times(records, name)) for name in _MARKS}
    figure, axes = draw("Passes and predictions over time", "time (UTC)", "number so far", _caption(moments))
    for name, times in moments.items():
        if not times:
            continue
        axes.plot(times, range(1, len(times) + 1), marker=_MARKS[name], linewidth=1, label=name)  # type: ignore[arg-type]
    axes.set_ylim(bottom=0)
    if any(moments.values()):
        axes.legend(frameon=False)
    figure.autofmt_xdate()
    said = ", ".join(f"{len(times)} {name}" for name, times in moments.items())
    return finished(figure, f"So far {said}.", _caption(moments), path)


def _times(records: Sequence[Record], name: str) -> list[datetime]:
    return [when for record in _belonging(records, name) if (when := _time_of(record)) is not None]


def _belonging(records: Sequence[Record], name: str) -> list[Record]:
    if name == PASSES:
        return history.first_passes(records)
    outcomes = [record for record in records if record.get("experiment") == "outcome"]
    return [one for one in outcomes if (one.get("verdict") == "supported") == (name == "predictions supported")]


def _time_of(record: Record) -> datetime | None:
    try:
        return datetime.fromisoformat(str(record.get("recorded_at")))
    except ValueError:
        return None


def _caption(moments: dict[str, list[datetime]]) -> str:
    return f"n = {sum(map(len, moments.values()))} records of one labbook"
