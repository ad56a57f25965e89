"""`labbook`: append to the labbook, list its records, show one, draw one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from labbook.book import Labbook, Reading, default_name
from labbook.errors import LabbookError, UsageError
from labbook.on_off_cli import add_command as add_on_off
from labbook.output import printable, show_everything
from labbook.places import file_argument
from labbook.record import Record, from_line, now_iso
from labbook.report import as_text, can_tell

DONE, FAILED, WRONG_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 (could not be done), 2 (wrong usage)."""
    options = _parser().parse_args(arguments)
    show_everything()
    try:
        return int(options.run(options))
    except UsageError as error:
        return _fail(error, WRONG_USAGE)
    except LabbookError as error:
        return _fail(error, FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="labbook", description="The lab notebook: a Markdown file with records.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--labbook",
        type=file_argument,
        default=default_name(),
        metavar="FILE",
        help="the labbook (LABBOOK, else labbook.md)",
    )
    shared.add_argument("--json", action="store_true", help="print JSON instead of text")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    append = commands.add_parser("append", parents=[shared], help="append one record")
    append.add_argument("record", nargs="?", default="-", help="one JSON object; - or nothing reads standard input")
    append.set_defaults(run=_append)
    listing = commands.add_parser("list", parents=[shared], help="one line per record")
    listing.add_argument("--label", help="only records with this label")
    listing.set_defaults(run=_list)
    show = commands.add_parser("show", parents=[shared], help="one record in full")
    show.add_argument("number", nargs="?", default="-1", help=_NUMBER_HELP)
    show.set_defaults(run=_show)
    plot = commands.add_parser("plot", parents=[shared], help="draw the bars of cold and warm records, or of one burst")
    plot.add_argument("numbers", nargs="*", default=["-1"], metavar="number", help=_NUMBER_HELP)
    plot.add_argument("--out", type=Path, metavar="FILE", help="a .png file (its record's number in labbook-figures)")
    plot.set_defaults(run=_plot)
    add_on_off(commands, shared)
    return parser


_NUMBER_HELP = "its number in `labbook list`, or -1 for the last one, -2 for the one before"


def _append(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.record == "-" else options.record
    try:
        record = from_line(text)
    except LabbookError as error:
        raise UsageError(f"the record is {error}") from None
    record.setdefault("recorded_at", now_iso())
    Labbook(options.labbook).append(record)
    print(json.dumps(record) if options.json else printable(f"record appended to {options.labbook}"))
    return DONE


def _list(options: argparse.Namespace) -> int:
    reading = _read(options.labbook)
    rows = [
        (number, record)
        for number, record in enumerate(reading.records, start=1)
        if options.label is None or record.get("label") == options.label
    ]
    if options.json:
        print(json.dumps([{"number": number, **record} for number, record in rows]))
        return DONE
    for number, record in rows:
        print(_row(number, record))
    if not rows:
        print(printable("no record" + (f" with the label {options.label}" if options.label is not None else "")))
    return DONE


def _show(options: argparse.Namespace) -> int:
    record = _numbered(_read(options.labbook), options.number)
    if not options.json and can_tell(record):
        print(as_text(record))
        return DONE
    if options.json:
        print(json.dumps(record))
        return DONE
    for line in json.dumps(record, indent=2, ensure_ascii=False).split("\n"):
        print(printable(line))
    return DONE


def _plot(options: argparse.Namespace) -> int:
    from labbook.experiment_figures import figure_of
    from labbook.figures import cold_warm_bars

    reading = _read(options.labbook)
    records = [_numbered(reading, number) for number in options.numbers]
    out = options.out or _figure_path(options.labbook, [reading.records.index(record) + 1 for record in records])
    drawn = figure_of(records[0], out) if len(records) == 1 else cold_warm_bars(records, out)
    told = {"figure": str(out), "sentence": drawn.sentence, "caption": drawn.caption}
    if options.json:
        print(json.dumps(told))
        return DONE
    print(printable(f"figure {out}: {drawn.sentence}"))
    print(printable(drawn.caption))
    return DONE


def _figure_path(labbook: Path, numbers: Sequence[int]) -> Path:
    """Beside the labbook, where `make measure` puts its figures, named after the records."""
    folder = labbook.parent / "labbook-figures"
    folder.mkdir(exist_ok=True)
    return folder / f"{'-'.join(f'{number:03}' for number in numbers)}.png"


def _read(path: Path) -> Reading:
    reading = Labbook(path).read()
    for problem in reading.problems:
        print(printable(f"labbook: {path}, {problem}"), file=sys.stderr)
    return reading


def _numbered(reading: Reading, text: str) -> Record:
    count = len(reading.records)
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no record number: see `labbook list`") from None
    if not count:
        raise LabbookError("the labbook holds no record yet")
    if number == 0 or abs(number) > count:
        raise UsageError(f"there is no record {number}: the labbook has {count}, numbered from 1")
    return reading.records[number - 1 if number > 0 else number]


def _row(number: int, record: Record) -> str:
    ratio = record.get("warm_over_cold")
    shown_ratio = f"warm/cold {ratio:.3f}" if isinstance(ratio, int | float) else ""
    fields = [
        str(record.get(name) or "")
        for name in ("recorded_at", "lab", "experiment", "label", "topic", "engine", "model")
    ]
    fields += [shown_ratio, str(record.get("verdict") or "")]
    return printable(f"{number:>4}  " + "  ".join(text for text in fields if text))


def _fail(error: LabbookError, status: int) -> int:
    print(printable(f"labbook: {error}"), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
