"""Explanations, series and findings as lines of text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from labbook.explain.advice import NONE, UNKNOWN, name
from labbook.explain.explanation import Explanation, Side
from labbook.explain.lint import Finding
from labbook.explain.series import Entry, Summary
from labbook.output import printable

_LABEL_COLUMNS = 14


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    unit, told = explanation.unit, explanation
    yield from _row("prompts", f"{told.a.prompt_tokens:,} and {told.b.prompt_tokens:,} {unit}s")
    yield from _row("shared", f"{told.sharing}; {told.reusable_tokens:,} {unit}s can be reused")
    if told.position is not None:
        yield from _row("they part at", f"{unit} {told.position:,}, {told.field}")
        yield from _row("  first", _shown(told.a, unit))
        yield from _row("  second", _shown(told.b, unit))
    yield from _row("cause", _cause(told))
    if told.is_alarm:
        yield from _row("lost", f"{told.lost_tokens:,} {unit}s are equal behind it and cannot be reused")
        yield from _row("to win", f"{told.gain_tokens:,} {unit}s more in whole pages, if they stood before it")
        yield from _row("do", told.fix)
    for note in (*told.notes, *([told.caveat] if told.caveat else [])):
        yield from _row("note", note)


def series_lines(entries: Sequence[Entry], summary: Sequence[Summary]) -> Iterator[str]:
    for entry in entries:
        yield printable(f"{entry.number:>5}  {_entry(entry)}")
    unit = next((entry.explanation.unit for entry in entries if entry.explanation), "token")
    if summary:
        yield ""
        yield f"{'cause':<20} {'bodies':>7} {unit + 's lost':>13}"
    for row in summary:
        yield f"{row.cause:<20} {row.count:>7,} {row.lost_tokens:>13,}"
    caveat = next((entry.explanation.caveat for entry in entries if entry.explanation), None)
    if caveat:
        yield printable(f"note: {caveat}")


def lint_lines(findings: Iterable[Finding]) -> Iterator[str]:
    told = False
    for finding in findings:
        told = True
        yield printable(finding.sentence)
        yield printable(f"  {finding.fix}")
    if not told:
        yield "nothing in this body keeps its prefix from being shared, as far as one body can show"


def _row(label: str, text: str) -> Iterator[str]:
    yield printable(f"{label:<{_LABEL_COLUMNS}}{text}")


def _cause(told: Explanation) -> str:
    if told.cause == NONE:
        return f"none: {told.why}"
    seen = f": {told.why}" if told.why else ""
    if told.cause == UNKNOWN:
        return f"unknown{seen}"
    return f"{told.cause} ({told.confidence}), {name(told.cause)}{seen}"


def _shown(side: Side, unit: str) -> str:
    token = "the end of the prompt" if side.token is None else f"{unit} {side.token_text!r}"
    number = f" (id {side.token})" if isinstance(side.token, int) else ""
    return f"{token}{number} in {side.before!r} + {side.after!r}"


def _entry(entry: Entry) -> str:
    told = entry.explanation
    if told is None:
        return "the first"
    if entry.is_new:
        return f"new: not one page is equal to a prompt before (best: {entry.against}, {told.sharing})"
    place = "" if told.position is None else f" at {told.unit} {told.position:,}, {told.field}"
    return f"against {entry.against}: {told.cause}{place}; {told.sharing}; {told.lost_tokens:,} {told.unit}s lost"
