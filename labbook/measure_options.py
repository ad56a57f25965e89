"""The options of `measure-prefix-cache`, and the plan that they make."""

from __future__ import annotations

import argparse
from pathlib import Path

from labbook.book import default_name
from labbook.errors import LabbookError, UsageError
from labbook.places import check_regular, file_argument
from labbook.run import (
    DEFAULT_ANSWER_TOKENS,
    DEFAULT_COMPETITORS,
    DEFAULT_MOST_S,
    DEFAULT_PREFIX_WORDS,
    DEFAULT_QUESTIONS,
    Plan,
)
from labbook.verdict import WORDS

EXPERIMENTS = ("pair", "repeat", "control", "eviction", "growth", "burst")
DEFAULT_BURST = 4


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="measure-prefix-cache",
        allow_abbrev=False,
        description="Measure whether an OpenAI-compatible server reuses a prompt's prefix, and append a record to "
        "labbook.md.",
        epilog="Exit status: 0 measured, 1 the server could not be measured, 2 wrong usage, 3 another verdict than "
        "--expect.",
    )
    add = made.add_argument
    add("--base-url", required=True, metavar="URL", help="for instance http://127.0.0.1:8000/v1")
    add("--model", help="name of the model; not needed when the server lists exactly one")
    shared = made.add_mutually_exclusive_group()
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
        "--experiment",
        choices=EXPERIMENTS,
        help="pair (the default): cold and warm requests. repeat: the same bytes again. control: one letter changed at "
        "the start, not_reused is right. eviction: other prompts in between. growth: time against length. burst: many "
        "at once, without a verdict",
    )
    add(
        "--repeats",
        type=int,
        metavar="N",
        help="groups of requests, or pairs of each length; left out, groups are added until the verdict is settled",
    )
    add(
        "--competitors",
        type=int,
        default=DEFAULT_COMPETITORS,
        metavar="N",
        help=f"prompts in between, of the experiment eviction ({DEFAULT_COMPETITORS})",
    )
    add(
        "--answer-tokens",
        type=int,
        default=DEFAULT_ANSWER_TOKENS,
        metavar="N",
        help=f"most tokens of an answer ({DEFAULT_ANSWER_TOKENS}); a burst has a number of its own",
    )
    add(
        "--burst",
        type=int,
        metavar="N",
        help="the experiment burst with N requests: identical, over one document, distinct, and one that comes late",
    )
    add(
        "--most-seconds",
        type=float,
        default=DEFAULT_MOST_S,
        metavar="S",
        help=f"add no group of requests that would end later than this ({DEFAULT_MOST_S:g})",
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
    return made


def settle_experiment(options: argparse.Namespace) -> None:
    """Make one experiment from the two options that name one. Raises UsageError when they contradict each other."""
    if options.burst is not None and options.experiment not in (None, "burst"):
        raise UsageError(f"--burst is another experiment than --experiment {options.experiment}: leave one of them out")
    if options.burst is None and options.experiment == "burst":
        options.burst = DEFAULT_BURST
    if options.burst is not None and options.expect:
        raise UsageError("a burst gives no verdict, so --expect has nothing to compare: leave one of them out")
    options.experiment = "burst" if options.burst is not None else options.experiment or "pair"


def plan_of(options: argparse.Namespace) -> Plan:
    """Raises UsageError for a value that makes no sense."""
    return Plan(
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
        repeats=options.repeats,
        competitors=options.competitors,
        answer_tokens=options.answer_tokens,
        most_s=options.most_seconds,
    )


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
