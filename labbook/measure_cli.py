"""`measure-prefix-cache`: prove on any OpenAI-compatible server that a prefix is reused, or say why not.

Exit status 0: measured. 1: the server could not be measured, and nothing was written. 2: wrong usage. 3: measured, but
not the verdict that --expect named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from labbook.book import Labbook, default_name
from labbook.errors import LabbookError, UsageError
from labbook.output import printable, show_everything
from labbook.places import check_regular, file_argument
from labbook.record import Record
from labbook.report import as_text
from labbook.run import DEFAULT_PREFIX_WORDS, DEFAULT_QUESTIONS, Plan
from labbook.verdict import WORDS

MEASURED, NOT_MEASURED, WRONG_USAGE, NOT_AS_EXPECTED = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(arguments)
    show_everything()
    try:
        if options.burst is not None and options.expect:
            raise UsageError("--burst gives no verdict, so --expect has nothing to compare: leave one of them out")
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="measure-prefix-cache",
        allow_abbrev=False,
        description="Measure whether an OpenAI-compatible server reuses a prompt's prefix, and append a record to "
        "labbook.md.",
        epilog="Exit status: 0 measured, 1 the server could not be measured, 2 wrong usage, 3 another verdict than "
        "--expect.",
    )
    add = parser.add_argument
    add("--base-url", required=True, metavar="URL", help="for instance http://127.0.0.1:8000/v1")
    add("--model", help="name of the model; not needed when the server lists exactly one")
    shared = parser.add_mutually_exclusive_group()
    shared.add_argument(
        "--prefix-words",
        type=int,
        default=DEFAULT_PREFIX_WORDS,
        metavar="N",
        help=f"words of synthetic prefix ({DEFAULT_PREFIX_WORDS})",
    )
    shared.add_argument("--prefix-file", type=Path, metavar="FILE", help="share this UTF-8 text instead")
    add(
        "--questions",
        type=int,
        default=DEFAULT_QUESTIONS,
        metavar="N",
        help=f"warm requests, each with another question ({DEFAULT_QUESTIONS})",
    )
    add(
        "--burst",
        type=int,
        metavar="N",
        help="measure bursts of N requests instead: identical, over one document, distinct, and one that comes late",
    )
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds for each whole request (120)")
    add("--label", default="", help="a word of yours that finds the record again")
    add("--engine", help="engine name for the record; found from the counters when left out")
    add("--engine-version", metavar="V", help="engine version for the record; asked from the server when left out")
    add("--api-key-env", metavar="NAME", help="environment variable that holds the API key")
    add("--seed", type=int, default=0, help="seed of the synthetic prefix (0); the nonce is fresh in every run")
    add(
        "--labbook",
        type=file_argument,
        default=default_name(),
        metavar="FILE",
        help="append here (LABBOOK, else labbook.md)",
    )
    add("--expect", choices=WORDS, help="exit with status 3 unless this is the verdict")
    add("--figure", type=Path, metavar="FILE", help="also draw its bars (.png, needs the extra `plot`)")
    add("--json", action="store_true", help="print the record as JSON instead of the report")
    return parser


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
    from labbook.measure import measure

    plan = Plan(
        model=options.model,
        prefix_words=options.prefix_words,
        prefix_text=_prefix_text(options.prefix_file),
        prefix_source=f"file {options.prefix_file.name}" if options.prefix_file else None,
        questions=options.questions,
        timeout_s=options.timeout,
        label=options.label,
        engine=options.engine,
        engine_version=options.engine_version,
        seed=options.seed,
    )
    if options.burst is not None:
        with _progress(3 * options.burst + 5) as progress:
            return measure_burst(
                options.base_url, options.burst, plan, api_key=_api_key(options.api_key_env), progress=progress
            )
    with _progress(plan.questions + 3) as progress:
        return measure(options.base_url, plan, api_key=_api_key(options.api_key_env), progress=progress)


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
    from labbook.burst_report import burst_bars, is_burst
    from labbook.figures import cold_warm_bars

    try:
        drawn = burst_bars(record, path) if is_burst(record) else cold_warm_bars(record, path)
        print(printable(f"figure {path}: {drawn.sentence}"), file=out)
    except LabbookError as error:  # the record stands: `labbook plot` can draw it later
        print(printable(f"measure-prefix-cache: {error}"), file=sys.stderr)


def _prefix_text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        check_regular(path, "the prefix file")  # opening a FIFO would hang
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"the prefix file {path} is not UTF-8: byte {error.start} cannot be read") from None
    except LabbookError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"cannot read the prefix file {path}: {error.strerror}") from None


def _api_key(name: str | None) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise UsageError(f"the environment variable {name} named by --api-key-env is not set")
    return key


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal, nothing anywhere else."""
    if not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield lambda phase: None
        return
    from tqdm import tqdm

    with tqdm(total=steps, unit="request", leave=False, file=sys.stderr) as bar:

        def step(phase: str) -> None:
            bar.set_description(phase)
            bar.update()

        yield step


def _fail(error: LabbookError | str, status: int) -> int:
    print(printable(f"measure-prefix-cache: {error}"), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
