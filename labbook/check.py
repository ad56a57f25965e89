"""`labbook check`: everything in a labbook that is not as it should be, by line. It reads strictly, edits nothing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labbook.book import Labbook, read_lines, split_lines
from labbook.fence import FenceReader
from labbook.output import counted, printable
from labbook.record_check import faults_of

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TORN = (
    "it was cut off while it was written, or edited; measure again, or begin the line with a word to keep it as text"
)
_NOT_JSON = "a record is one JSON object on one line: correct it by hand, or begin the line with a word"


@dataclass(frozen=True)
class Fault:
    """What is wrong on a line, counted from 1, and what to do about it."""

    line_number: int
    what: str
    what_to_do: str

    def __str__(self) -> str:
        return f"line {self.line_number}: {self.what}. {self.what_to_do[0].upper()}{self.what_to_do[1:]}."


def check(path: str | Path) -> list[Fault]:
    """Every fault of a labbook, in the order of its lines. Raises LabbookError when there is none to read."""
    content = Labbook(path).content()
    found = [*_line_faults(content), *_ends(content), *_marks(content), *_open_fence(content)]
    return sorted(found, key=lambda fault: fault.line_number)


def _line_faults(content: bytes) -> Iterator[Fault]:
    reading, lines = read_lines(content), split_lines(content)
    for problem in reading.problems:
        is_torn = not lines[problem.line_number - 1].rstrip().endswith(b"}")
        yield Fault(problem.line_number, problem.reason, _TORN if is_torn else _NOT_JSON)
    for number, record in zip(reading.line_numbers, reading.records, strict=True):
        for name in _repeated_keys(lines[number - 1]):
            yield Fault(
                number,
                f"the key {name!r} stands twice in one object, and only its last value counts",
                "remove one of them",
            )
        for fault in faults_of(record):
            yield Fault(
                number, fault, "correct it by hand if you know better, else leave the record out of conclusions"
            )


def _repeated_keys(line: bytes) -> list[str]:
    repeated: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        repeated.extend(dict.fromkeys(name for name in names if names.count(name) > 1))
        return dict(pairs)

    json.loads(line.removeprefix(_BYTE_ORDER_MARK).decode("utf-8"), object_pairs_hook=note)
    return repeated


def _ends(content: bytes) -> Iterator[Fault]:
    """One fault for all lines that end in CRLF, and one for all that end in a lone CR."""
    for end, name in ((b"\r\n", "CRLF"), (b"\r", "a lone CR")):
        places = [line for line, found in _line_ends(content) if found == end]
        if places:
            many = f"this and {len(places) - 1} other lines end" if len(places) > 1 else "this line ends"
            yield Fault(
                places[0],
                f"{many} in {name}, not in LF",
                "save the file with LF line ends; records are read all the same",
            )


def _line_ends(content: bytes) -> Iterator[tuple[int, bytes]]:
    place, lines = 0, split_lines(content)
    for number, line in enumerate(lines[:-1], start=1):
        place += len(line)
        end = content[place : place + 2] if content[place : place + 2] == b"\r\n" else content[place : place + 1]
        place += len(end)
        yield number, end


def _marks(content: bytes) -> Iterator[Fault]:
    for number, line in enumerate(split_lines(content), start=1):
        if line.startswith(_BYTE_ORDER_MARK):
            yield Fault(number, "a byte order mark stands before the line", "save the file as UTF-8 without one")


def _open_fence(content: bytes) -> Iterator[Fault]:
    """In a code block nothing is a broken record, so a block without an end hides those that are."""
    fence = FenceReader()
    for number, line in enumerate(split_lines(content), start=1):
        fence.feed(number, line)
    if fence.opened_at is not None:
        yield Fault(fence.opened_at, "a code block begins here and never ends", "end it with a fence of its own")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "check",
        parents=[shared],
        help="read strictly and tell every fault by its line",
        description="Tell every fault by its line, and what to do. Nothing is edited. Exit status 1 when there is one.",
    )
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    faults = check(options.labbook)
    num_records = len(Labbook(options.labbook).read().records)
    if options.json:
        print(json.dumps({"records": num_records, "faults": [asdict(fault) for fault in faults]}))
        return 1 if faults else 0
    for fault in faults:
        print(printable(f"{options.labbook}, {fault}"))
    told = counted(len(faults), "fault") if faults else "no fault"
    print(printable(f"{options.labbook}: {counted(num_records, 'record')}, {told}"))
    return 1 if faults else 0
