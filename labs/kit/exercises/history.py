"""What a learner did in the labs, kept in the labbook like every other result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labbook.book import Labbook
from labbook.record import Record
from labs.kit.course_record import LAB, course_record
from labs.kit.exercises.lab import Lab
from labs.kit.exercises.outcome import Outcome

STARTED, CHECKED, HINTED, SOLVED = "lab-start", "lab-check", "lab-hint", "lab-solution"


def note(labbook: Path, experiment: str, lab: Lab, **fields: Any) -> Record:
    """Append one record about a lab."""
    return Labbook(labbook).append(course_record(experiment, exercise=lab.key, **fields))


def note_outcomes(labbook: Path, lab: Lab, outcomes: Sequence[Outcome]) -> None:
    """One record for each part that was attempted: an untouched stub is no result."""
    for outcome in outcomes:
        if outcome.kind != "not attempted":
            note(labbook, CHECKED, lab, **outcome.as_dict())


@dataclass(frozen=True)
class Standing:
    """How far a learner is with one lab."""

    lab: Lab
    num_passed: int
    num_tries: int
    num_hints: int
    saw_solution: bool
    passed_at: str | None
    """When its last missing part passed, ISO 8601."""

    @property
    def is_passed(self) -> bool:
        return self.num_passed == len(self.lab.parts)


def first_passes(records: Iterable[Record]) -> list[Record]:
    """Of each part of each lab, the record with which it passed for the first time."""
    first: dict[tuple[object, object], Record] = {}
    for record in records:
        if record.get("experiment") == CHECKED and record.get("outcome") == "passed":
            first.setdefault((record.get("exercise"), record.get("part")), record)
    return list(first.values())


def touched(labbook: Path) -> set[str]:
    """Keys of the labs that were started or checked."""
    return {str(one.get("exercise")) for one in _read(labbook) if one.get("experiment") in (STARTED, CHECKED)}


def hints_given(labbook: Path, lab: Lab) -> int:
    return sum(record["experiment"] == HINTED for record in _about(lab, _read(labbook)))


def standings(labbook: Path, labs: Iterable[Lab]) -> list[Standing]:
    """One for each lab, from the records alone. Records that are not about the labs are passed over."""
    records = _read(labbook)
    return [_standing(lab, _about(lab, records)) for lab in labs]


def _standing(lab: Lab, records: Sequence[Record]) -> Standing:
    passed_at: dict[str, str] = {}
    for record in records:
        if record["experiment"] == CHECKED and record.get("outcome") == "passed":
            passed_at.setdefault(str(record.get("part")), str(record.get("recorded_at")))
    titles = {part.title for part in lab.parts}
    done = {part: when for part, when in passed_at.items() if part in titles}
    return Standing(
        lab=lab,
        num_passed=len(done),
        num_tries=sum(record["experiment"] == CHECKED for record in records),
        num_hints=sum(record["experiment"] == HINTED for record in records),
        saw_solution=any(record["experiment"] == SOLVED for record in records),
        passed_at=max(done.values()) if len(done) == len(titles) else None,
    )


def _read(labbook: Path) -> list[Record]:
    """Records of the course; none where there is no labbook yet."""
    return Labbook(labbook).select(lab=LAB) if labbook.exists() else []


def _about(lab: Lab, records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.get("exercise") == lab.key]
