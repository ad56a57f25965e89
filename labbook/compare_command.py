"""`labbook compare A B`: the text of a comparison, and the command."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from labbook.output import printable
from labbook.record import Record
from labbook.selection import CHOICE_HELP, chosen, read_and_tell

if TYPE_CHECKING:
    from labbook.compare import Comparison, Row
    from labbook.run_numbers import Reach

_DESCRIPTION = (
    "Two runs side by side: counts first, then times with the intervals that the records carry. Refuses, with "
    "status 2, when experiment, model, identity, KV precision, prompt hash or machine differ."
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("compare", parents=[shared], help="two runs side by side", description=_DESCRIPTION)
    parser.add_argument("a", metavar="A", help=f"a record: {CHOICE_HELP}")
    parser.add_argument("b", metavar="B", help="the other one")
    parser.add_argument("--force", action="store_true", help="compare runs that differ in more than what is compared")
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from labbook.compare import compare

    reading = read_and_tell(options.labbook)
    (number_a, a), (number_b, b) = chosen(reading, options.a), chosen(reading, options.b)
    comparison = compare(a, b, options.force)
    if options.json:
        print(json.dumps({"a": number_a, "b": number_b, **comparison.as_dict()}))
        return 0
    for line in [_head("A", number_a, a), _head("B", number_b, b), *as_lines(comparison)]:
        print(printable(line))
    return 0


def as_lines(comparison: Comparison) -> list[str]:
    """Conditions, counts, times; what is not known is said to be so."""
    from labbook.compare import shown

    lines = [
        f"  DIFFERS, compared by force: {it.name}, {shown(it.a)} in A and {shown(it.b)} in B"
        for it in comparison.differing
    ]
    lines += [f"  not known: {it.name}, A {shown(it.a)}, B {shown(it.b)}" for it in comparison.unknown]
    same = [it.name for it in comparison.conditions if it.is_known and not it.differs]
    lines.append(f"  the same: {', '.join(same) or 'nothing that is known'}")
    lines += ["", f"  {'counts':<40}{'A':>14}{'B':>14}{'B / A':>9}", *map(_row, comparison.counts)]
    lines += ["", f"  {'times':<40}{'A':>14}{'B':>14}{'B / A':>9}"]
    for row in comparison.times:
        lines += [_row(row), *_reaches(row)]
    if not any(reach and "interval" in reach.what for row in comparison.times for reach in (row.a_reach, row.b_reach)):
        lines += ["", "  no interval in either record: a small difference of times may be noise; counts are not"]
    return lines


def _head(letter: str, number: int, record: Record) -> str:
    told = [f"record {number}", *(str(record[name]) for name in ("label", "engine", "model") if record.get(name))]
    verdict = f"; verdict {record['verdict']}" if record.get("verdict") else ""
    return f"{letter}  {', '.join(told)}{verdict}"


def _row(row: Row) -> str:
    ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
    return f"  {row.name:<40}{_value(row.a, row.unit):>14}{_value(row.b, row.unit):>14}{ratio:>9}"


def _reaches(row: Row) -> list[str]:
    """The line beneath a time that says how far each side reaches."""
    told = [
        f"{letter} {_reach(reach, row.unit)}" for letter, reach in (("A", row.a_reach), ("B", row.b_reach)) if reach
    ]
    return [f"      {'; '.join(told)}"] if told else []


def _reach(reach: Reach, unit: str) -> str:
    return f"{_value(reach.low, unit)} to {_value(reach.high, unit)} ({reach.what})"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "not known"
    if unit == "s":
        return f"{value * 1000:,.1f} ms"
    return f"{value:,.3f}" if unit == "ratio" else f"{value:,.0f}"
