"""Which record a person means: by its number in `labbook list`, from the end, or by its label."""

from __future__ import annotations

import sys
from pathlib import Path

from labbook.book import Labbook, Reading
from labbook.errors import LabbookError, UsageError
from labbook.output import printable
from labbook.record import Record

NUMBER_HELP = "its number in `labbook list`, or -1 for the last one, -2 for the one before"
CHOICE_HELP = f"{NUMBER_HELP}, or the label of the last record that has it"


def read_and_tell(path: Path) -> Reading:
    """Everything in the labbook; the lines that are broken are told on standard error."""
    reading = Labbook(path).read()
    for problem in reading.problems:
        print(printable(f"labbook: {path}, {problem}"), file=sys.stderr)
    return reading


def numbered(reading: Reading, text: str) -> Record:
    """The record with this number. Raises UsageError when there is none."""
    return reading.records[_index(reading, text)]


def chosen(reading: Reading, text: str) -> tuple[int, Record]:
    """Number and record of what `text` names: a number, else the label, of which the last record is meant.

    Raises UsageError when nothing has that number or label.
    """
    try:
        int(text)
    except ValueError:
        pass
    else:
        index = _index(reading, text)
        return index + 1, reading.records[index]
    labelled = [number for number, record in enumerate(reading.records, start=1) if record.get("label") == text]
    if not labelled:
        raise UsageError(f"no record has the label {text!r}: see `labbook list` for numbers and labels")
    return labelled[-1], reading.records[labelled[-1] - 1]


def _index(reading: Reading, text: str) -> int:
    """The place of a record from its number, counted from 0."""
    count = len(reading.records)
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no record number: see `labbook list`") from None
    if not count:
        raise LabbookError("the labbook holds no record yet")
    if number == 0 or abs(number) > count:
        raise UsageError(f"there is no record {number}: the labbook has {count}, numbered from 1")
    return number - 1 if number > 0 else count + number
