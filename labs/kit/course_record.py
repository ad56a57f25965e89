"""The head and the end of every record that the course itself makes: predictions, answers, checks of the labs."""

from __future__ import annotations

from typing import Any

from labbook.record import RECORD_VERSION, Record, now_iso

LAB = "course"


def course_record(experiment: str, **fields: Any) -> Record:
    """A record of now; `fields` stand between its head and its time, in their order."""
    head = {"version": RECORD_VERSION, "lab": LAB, "experiment": experiment}
    return {**head, **fields, "recorded_at": now_iso()}
