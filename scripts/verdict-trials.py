#!/usr/bin/env python3
"""Does the instrument's verdict hold? Runs it many times on real servers whose cache is known to be on, or off.

Two servers (minivllm and mlx_lm.server), each with its cache on and off, each seen in full and through a proxy that
leaves nothing but the clock. Every run is `measure-prefix-cache` as it comes, with default settings. A verdict other
than `reused` (on) or `not_reused` (off) is wrong, `inconclusive` included.

    .venv/bin/python scripts/verdict-trials.py --report docs/verdict-trials.md
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labbook.book import Labbook
from labbook.errors import LabbookError
from labbook.measure import measure
from labbook.places import check_writable, file_argument
from labbook.record import Record, environment_stamp, now_iso
from labs.kit.mlx_serving import running_mlx_server
from labs.kit.parameters import DEFAULT_MODEL
from labs.kit.serving import Server, ServingError, running_server
from labs.kit.stripping import stripping_proxy
from scripts.verdict_trials.report import Trial, as_markdown, as_table

ALL_RIGHT, SOME_WRONG, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
ENGINES = ("minivllm", "mlx_lm.server")
OFF_FLAGS = {"minivllm": ["--no-prefix-cache"], "mlx_lm.server": ["--prompt-cache-size", "0"]}
EXPECTED = {"on": "reused", "off": "not_reused"}
QUICK_RUNS = 2
VIEWS = ("all signals", "clock alone")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.quick:
        options.runs = QUICK_RUNS
    book = Labbook(options.labbook) if options.labbook else None
    try:
        for place, what in ((options.report, "the report"), (options.labbook, "the lab notebook")):
            if place:
                check_writable(place, what)
    except LabbookError as error:
        return _fail(str(error), WRONG_USAGE)
    trials: list[Trial] = []
    begun_s = time.monotonic()
    failed = None
    try:
        for engine in options.engines:
            for cache in EXPECTED:
                for trial in _trials_on(engine, cache, options, book):
                    trials.append(trial)  # one by one: what is done is reported, whatever comes after
    except (LabbookError, ServingError) as error:
        failed = _fail(str(error), SOME_WRONG)
    except KeyboardInterrupt:
        failed = _fail("stopped", INTERRUPTED)
    if trials:
        _tell(trials, options, time.monotonic() - begun_s)
    return failed or (ALL_RIGHT if all(trial.is_right for trial in trials) else SOME_WRONG)


def _tell(trials: list[Trial], options: argparse.Namespace, seconds: float) -> None:
    print(as_table(trials))
    if options.report:
        options.report.write_text(as_markdown(trials, _conditions(options, seconds)), encoding="utf-8")
        print(f"report {options.report}")


def _trials_on(engine: str, cache: str, options: argparse.Namespace, book: Labbook | None) -> Iterator[Trial]:
    """Both views of one server, run by run, so that both see the same machine."""
    with _server(engine, cache, options.model) as server, stripping_proxy(server.base_url) as clock_only:
        for number in range(1, options.runs + 1):
            for view, url in zip(VIEWS, (server.base_url, clock_only), strict=True):
                begun_s = time.monotonic()
                record = _measure(url, server.model, engine, f"{engine}, cache {cache}, {view}", options)
                if book:
                    book.append(record)
                trial = Trial(engine, cache, view, EXPECTED[cache], record, time.monotonic() - begun_s)
                print(trial.line(number), file=sys.stderr, flush=True)
                yield trial


def _measure(url: str, model: str | None, engine: str, label: str, options: argparse.Namespace) -> Record:
    plan: dict[str, Any] = {"model": model, "engine": engine, "label": label}
    if options.prefix_words:
        plan["prefix_words"] = options.prefix_words
    return measure(url, **plan)


def _server(engine: str, cache: str, model: str) -> AbstractContextManager[Server]:
    flags = OFF_FLAGS[engine] if cache == "off" else []
    if engine == "mlx_lm.server":
        return running_mlx_server(model, flags)
    return running_server(model, flags=flags, is_quiet=True)


def _conditions(options: argparse.Namespace, seconds: float) -> dict[str, str]:
    stamp = environment_stamp()
    words = f" --prefix-words {options.prefix_words}" if options.prefix_words else ""
    return {
        "command": f"scripts/verdict-trials.py --runs {options.runs} --model {options.model} --engines "
        f"{' '.join(options.engines)}{words}",
        "model": options.model,
        "settings": "the defaults of measure-prefix-cache" + (f", except{words}" if words else ""),
        "machine": f"{stamp['device']}, Python {stamp['python']}, labbook {stamp['tool_version']}",
        "finished": now_iso(),
        "duration": f"{seconds / 60:.1f} min",
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Run measure-prefix-cache many times on real servers, cache on and off, and count verdicts.",
        epilog="Exit status: 0 every verdict is right, 1 one is wrong or a server failed, 2 wrong usage.",
    )
    add = parser.add_argument
    add("--runs", type=int, default=20, metavar="N", help="runs of each kind (%(default)s)")
    add("--quick", action="store_true", help=f"{QUICK_RUNS} runs of each kind")
    add("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="which servers (both)")
    add("--model", default=DEFAULT_MODEL, help="a registered model (%(default)s)")
    add("--prefix-words", type=int, metavar="N", help="instead of the instrument's default")
    add("--report", type=file_argument, metavar="FILE", help="write the table with its conditions as Markdown")
    add("--labbook", type=file_argument, metavar="FILE", help="append every record here (nowhere)")
    return parser


def _fail(message: str, status: int) -> int:
    print(f"verdict-trials: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
