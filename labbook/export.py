"""`labbook export`: the records as CSV, one row each, for a spreadsheet or a data frame.

The columns of COLUMNS come first, in that order, in every export: name, then the dotted place in the record that it is
read from. `everything` appends a column for each other field that is no list, named by its dotted place. A field that a
record lacks is an empty cell. Text is UTF-8; quoting and line ends (CRLF) are those of RFC 4180.

A text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP: CSV Injection); numbers stay.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

from labbook.new_file import check_new, write_new
from labbook.output import counted, printable
from labbook.places import file_argument
from labbook.record import Record
from labbook.selection import read_and_tell

COLUMNS = {
    **{name: name for name in ("recorded_at", "lab", "experiment", "label", "engine", "engine_version", "model")},
    **{name: name for name in ("base_url", "verdict", "verdict_reason", "prompt_tokens", "shared_prefix_tokens")},
    **{name: name for name in ("page_tokens", "timed", "cold_s")},
    **{f"warm_{name}_s": f"warm_s.{name}" for name in ("p50", "mean", "min", "max")},
    "warm_count": "warm_s.count",
    "warm_over_cold": "warm_over_cold",
    "warm_over_cold_low": "warm_over_cold_interval.low",
    "warm_over_cold_high": "warm_over_cold_interval.high",
    "control_s": "control_s",
    "warm_cached_tokens": "signals.cached_tokens.value",
    "hits_tokens": "cache_metrics_delta.hits_tokens",
    "queries_tokens": "cache_metrics_delta.queries_tokens",
    **{name: name for name in ("failed", "first_error", "kv_precision", "prompt_sha256", "seed", "version")},
    "device": "environment.device",
}
# What makes a spreadsheet take a text for a formula, full-width forms included.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Cell = str | int | float | bool | None


def rows(records: Sequence[Record], everything: bool = False) -> list[dict[str, Cell]]:
    """A row for each record, `number` first, all with the same columns; None where a record lacks a field."""
    flat = [flattened(record) for record in records]
    others: list[str] = []
    if everything:
        known = set(COLUMNS.values())
        others = list(dict.fromkeys(place for one in flat for place in one if place not in known))
    return [
        {"number": number}
        | {name: one.get(place) for name, place in COLUMNS.items()}
        | {place: one.get(place) for place in others}
        for number, one in enumerate(flat, start=1)
    ]


def flattened(record: Record, before: str = "") -> dict[str, Cell]:
    """Every field that is no list, by its dotted place."""
    flat: dict[str, Cell] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{before}{key}.")
        elif not isinstance(value, list):
            flat[before + key] = value
    return flat


def as_csv(records: Sequence[Record], everything: bool = False) -> str:
    table = rows(records, everything)
    columns = list(table[0]) if table else ["number", *COLUMNS]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(harmless(name) for name in columns)
    writer.writerows([harmless(row[name]) for name in columns] for row in table)
    return buffer.getvalue()


def harmless(cell: Cell) -> Any:
    """The cell as it is written: no text of it is a formula."""
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA_STARTS):
        return "'" + cell
    return cell


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("export", parents=[shared], help="the records as CSV, one row each")
    parser.add_argument("--out", type=file_argument, metavar="FILE", help="write a new file (else standard output)")
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")
    parser.add_argument("--all", action="store_true", help="add a column for every other field that is no list")
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    if options.out is not None:
        check_new(options.out, "the export", options.force, options.labbook)
    records = read_and_tell(options.labbook).records
    text = json.dumps(rows(records, options.all)) + "\n" if options.json else as_csv(records, options.all)
    if options.out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(newline="")  # the line ends are there already
        sys.stdout.write(text)
        return 0
    write_new(options.out, text, "the export")
    print(printable(f"{counted(len(records), 'record')} exported to {options.out}"), file=sys.stderr)
    return 0
