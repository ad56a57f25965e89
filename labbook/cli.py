"""`labbook`: append to the labbook, list its records, show one, draw one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from labbook import check, compare_command, engines_cli, explain_command, export, html_report, on_off_cli, plot
from labbook.book import Labbook, default_name
from labbook.errors import LabbookError, UsageError
from labbook.output import printable, show_everything
from labbook.places import file_argument
from labbook.record import Record, from_line, now_iso
from labbook.report import as_text, can_tell
from labbook.selection import NUMBER_HELP, numbered, read_and_tell
from labbook.tap import command as tap

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
    show.add_argument("number", nargs="?", default="-1", help=NUMBER_HELP)
    show.set_defaults(run=_show)
    for command in (plot, compare_command, on_off_cli, check, export, html_report, tap, explain_command, engines_cli):
        command.add_parser(commands, shared)
    return parser


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
    reading = read_and_tell(options.labbook)
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
    record = numbered(read_and_tell(options.labbook), options.number)
    if not options.json and can_tell(record):
        print(as_text(record))
        return DONE
    if options.json:
        print(json.dumps(record))
        return DONE
    for line in json.dumps(record, indent=2, ensure_ascii=False).split("\n"):
        print(printable(line))
    return DONE


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
