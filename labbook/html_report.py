"""`labbook report`: one HTML file with figures and records, to keep, to print or to send.

Nothing is loaded from anywhere: figures are part of the file, each with its sentence. Everything is escaped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from labbook import html_page as html
from labbook.book import Problem
from labbook.errors import LabbookError, UsageError
from labbook.new_file import check_new, write_new
from labbook.output import counted, printable
from labbook.places import file_argument
from labbook.plot import figure_of
from labbook.progress import progress
from labbook.record import Record, now_iso
from labbook.report import as_text, can_tell
from labbook.selection import CHOICE_HELP, chosen, read_and_tell

MAX_FIGURES = 100

Numbered = Sequence[tuple[int, Record]]

_COLUMNS = ("record", "recorded at", "experiment", "label", "engine", "model", "cold", "warm", "warm / cold", "verdict")


def report(
    records: Numbered,
    problems: Sequence[Problem] = (),
    title: str = "Lab notebook",
    step: Callable[[], None] = lambda: None,
) -> tuple[str, int]:
    """The HTML of these records, by number, and how many figures are in it. `step` is called after each record."""
    drawn_from = len(records) - MAX_FIGURES
    parts, num_figures = [], 0
    for place, (number, record) in enumerate(records):
        section, has_figure = _section(number, record, is_drawn=place >= drawn_from)
        parts.append(section)
        num_figures += has_figure
        step()
    undrawn = f" Figures are drawn for the last {MAX_FIGURES} of them." if drawn_from > 0 else ""
    lead = html.paragraph(f"{counted(len(records), 'record')}, reported at {now_iso()} (UTC).{undrawn}")
    return html.page(title, [lead, _overview(records), *_unreadable(problems), *parts]), num_figures


def _overview(records: Numbered) -> str:
    rows = [
        (
            number,
            *(_told(record.get(name)) for name in ("recorded_at", "experiment", "label", "engine", "model")),
            _ms(record.get("cold_s")),
            _ms(_median(record.get("warm_s"))),
            _ratio(record.get("warm_over_cold")),
            _told(record.get("verdict")),
        )
        for number, record in records
    ]
    return html.table("All records", _COLUMNS, rows, [_anchor(number) for number, _ in records])


def _unreadable(problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return []
    rows = [(problem.line_number, problem.reason) for problem in problems]
    return [html.table("Lines that are no readable record", ("line", "reason"), rows)]


def _section(number: int, record: Record, is_drawn: bool) -> tuple[str, bool]:
    title = " ".join(str(record[name]) for name in ("label", "experiment") if record.get(name)) or "record"
    parts = [html.heading(2, f"{number}. {title}", _anchor(number))]
    figure = _figure(record) if is_drawn else None
    if figure is not None:
        parts.append(figure)
    if (text := _text(record)) is not None:
        parts.append(html.preformatted(text))
    as_json = html.preformatted(json.dumps(record, indent=2, ensure_ascii=False))
    parts.append(html.folded("every field", as_json) if text is not None else as_json)
    return "\n".join(["<section>", *parts, "</section>"]), figure is not None and figure.startswith("<figure")


def _figure(record: Record) -> str | None:
    """The record's figure, a sentence where matplotlib is missing, None where there is nothing to draw."""
    try:
        drawn = figure_of([record])
        return html.picture(drawn.png(), drawn.sentence, drawn.caption)
    except (UsageError, KeyError, TypeError, ValueError, AttributeError):  # another lab's record, or an edited one
        return None
    except LabbookError as error:
        return html.paragraph(f"No figure: {error}.")


def _text(record: Record) -> str | None:
    """The report for a person; None for records that it does not know, or that somebody edited."""
    try:
        return as_text(record) if can_tell(record) else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _anchor(number: int) -> str:
    return f"record-{number}"


def _told(value: object) -> str:
    return "" if value is None else str(value)


def _median(spread: object) -> object:
    return spread.get("p50") if isinstance(spread, dict) else None


def _ms(seconds: object) -> str:
    return f"{seconds * 1000:,.1f} ms" if isinstance(seconds, int | float) else ""


def _ratio(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else ""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("report", parents=[shared], help="one HTML file with figures and records")
    parser.add_argument("records", nargs="*", metavar="record", help=f"{CHOICE_HELP} (all records)")
    parser.add_argument(
        "--out", type=file_argument, default=Path("report.html"), metavar="FILE", help="a new file (report.html)"
    )
    parser.add_argument("--title", default="Lab notebook", help="the title of the page")
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    check_new(options.out, "the report", options.force, options.labbook)
    reading = read_and_tell(options.labbook)
    records = [chosen(reading, text) for text in options.records] or list(enumerate(reading.records, start=1))
    with progress(len(records), "record") as step:
        page, num_figures = report(records, reading.problems, options.title, step)
    write_new(options.out, page, "the report")
    if options.json:
        print(json.dumps({"report": str(options.out), "records": len(records), "figures": num_figures}))
    else:
        print(printable(f"report {options.out}: {counted(len(records), 'record')}, {counted(num_figures, 'figure')}"))
    return 0
