"""`measure-prefix-cache`: prove on any OpenAI-compatible server that a prefix is reused, or say why not.

Exit status 0: measured. 1: the server could not be measured, and nothing was written. 2: wrong usage. 3: measured, but
not the verdict that --expect named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from labbook.book import Labbook
from labbook.errors import LabbookError, UsageError
from labbook.keys import api_key
from labbook.measure_options import parser, plan_of, settle_experiment
from labbook.output import printable, show_everything
from labbook.progress import progress
from labbook.record import Record
from labbook.report import as_text

MEASURED, NOT_MEASURED, WRONG_USAGE, NOT_AS_EXPECTED = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = parser().parse_args(arguments)
    show_everything()
    try:
        settle_experiment(options)
        book = Labbook(options.labbook)
        _check_places(book, options.figure)
        record = _measure(options)
        _keep(record, book)
        _tell(record, book, options)
    except UsageError as error:
        return _fail(error, WRONG_USAGE)
    except LabbookError as error:
        return _fail(error, NOT_MEASURED)
    except KeyboardInterrupt:
        return _fail("stopped; nothing was written", 130)
    if options.expect and options.expect != record["verdict"]:
        return _fail(f"expected the verdict {options.expect}, measured {record['verdict']}", NOT_AS_EXPECTED)
    return MEASURED


def _check_places(book: Labbook, figure: Path | None) -> None:
    """Everything that would lose a finished measurement is checked before it begins."""
    try:
        book.check_writable_place()
    except LabbookError as error:
        raise UsageError(str(error)) from None
    if figure is None:
        return
    if figure.suffix.lower() != ".png":
        raise UsageError(f"the figure {figure} is written as PNG: name a file that ends in .png")
    if not figure.parent.is_dir():
        raise UsageError(f"the folder {figure.parent} of the figure does not exist: make it first")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--figure needs matplotlib: install the extra `plot`")


def _measure(options: argparse.Namespace) -> Record:
    from labbook.burst import measure_burst
    from labbook.growth import measure_growth, num_requests
    from labbook.measure import measure

    plan, key = plan_of(options), api_key(options.api_key_env)
    if options.experiment == "burst":
        with progress(3 * options.burst + 5, "request") as step:
            return measure_burst(options.base_url, options.burst, plan, api_key=key, progress=step)
    if options.experiment == "growth":
        with progress(num_requests(plan), "request") as step:
            return measure_growth(options.base_url, plan, api_key=key, progress=step)
    with progress((plan.repeats or 1) * (plan.questions + 2) + 1, "request") as step:
        return measure(options.base_url, plan, experiment=options.experiment, api_key=key, progress=step)


def _keep(record: Record, book: Labbook) -> None:
    try:
        book.append(record)
    except LabbookError:
        print(json.dumps(record), file=sys.stderr)  # minutes of measuring are not lost to a full disk
        raise


def _tell(record: Record, book: Labbook, options: argparse.Namespace) -> None:
    out = sys.stderr if options.json else sys.stdout
    if options.json:
        print(json.dumps(record, indent=2))
    else:
        print(as_text(record))
    print(printable(f"record appended to {book.path}"), file=out)
    if options.figure is not None:
        _draw(record, options.figure, out)


def _draw(record: Record, path: Path, out: TextIO) -> None:
    from labbook.plot import figure_of

    try:
        drawn = figure_of([record], path)
        print(printable(f"figure {path}: {drawn.sentence}"), file=out)
    except LabbookError as error:  # the record stands: `labbook plot` can draw it later
        print(printable(f"measure-prefix-cache: {error}"), file=sys.stderr)


def _fail(error: LabbookError | str, status: int) -> int:
    print(printable(f"measure-prefix-cache: {error}"), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
