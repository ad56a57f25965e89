"""`labs list | start | check | hint | solution | measure | progress`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labs.kit.exercises import history, workbook
from labs.kit.exercises.answering import check_file
from labs.kit.exercises.feedback import all_as_text
from labs.kit.exercises.lab import NUM_HINTS, Lab, LabError, all_labs, find_lab
from labs.kit.exercises.outcome import Outcome
from labs.kit.parameters import default_labbook
from labs.kit.table import text_table

NOT_ALL_PASSED = 1
FIGURE = "labs-progress.png"


def add_parser(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the commands of the labs; `run` of each returns the exit status."""

    def add(name: str, run: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        described = f"{about[0].upper()}{about[1:]}."
        parser: argparse.ArgumentParser = commands.add_parser(name, parents=[shared], help=about, description=described)
        parser.add_argument("--folder", type=Path, help="where your copies are (default: mylabs, or MYLABS)")
        parser.add_argument(
            "--labbook", type=Path, help="where your progress is kept (default: labbook.md, or LABBOOK)"
        )
        parser.set_defaults(run=run)
        return parser

    add("list", run_list, "the labs, and how far you are")
    _lab(add("start", run_start, "copy the exercise of a lab to mylabs; never overwrites"))
    check = _lab(add("check", run_check, "check what you wrote"), nargs="?")
    check.add_argument("--all", action="store_true", help="every lab that you have started")
    _lab(add("hint", run_hint, f"the next of {NUM_HINTS} hints"))
    solution = _lab(add("solution", run_solution, "show a solution; asks first"))
    solution.add_argument("--yes", action="store_true", help="do not ask")
    measure = _lab(add("measure", run_measure, "run a real model on what you wrote, beside the engine's own"))
    measure.add_argument("--model", help="a model of the registry, or a folder (default: LAB_MODEL, or smollm2-135m)")
    progress = add("progress", run_progress, "what you tried and passed, from the labbook")
    figure_help = "also draw it over time (default: labs-progress.png)"
    progress.add_argument("--figure", type=Path, nargs="?", const=Path(FIGURE), metavar="FILE.png", help=figure_help)


def _lab(parser: argparse.ArgumentParser, nargs: str | None = None) -> argparse.ArgumentParser:
    parser.add_argument("lab", nargs=nargs, help='a number, a name or a folder: "3", "eviction", "03_eviction"')
    return parser


def run_list(options: argparse.Namespace) -> int:
    rows = [
        {
            "lab": standing.lab.key,
            "title": standing.lab.title,
            "difficulty": standing.lab.difficulty,
            "importance": standing.lab.importance,
            "minutes": standing.lab.minutes,
            "lines": standing.lab.lines,
            "status": _status(standing, options),
        }
        for standing in history.standings(_labbook(options), all_labs())
    ]
    headings = ["lab", "what it is about", "difficulty (1-5)", "importance (1-5)", "minutes", "lines", "status"]
    return _print(options, {"labs": rows}, text_table(headings, [list(row.values()) for row in rows]))


def run_start(options: argparse.Namespace) -> int:
    lab = find_lab(options.lab)
    path, is_new = workbook.start(lab, _folder(options))
    if is_new:
        history.note(_labbook(options), history.STARTED, lab)
    readme = lab.folder / "README.md"
    told = f"{'wrote' if is_new else 'kept, as you have it:'} {path}\nread   {readme}\nthen   labs check {lab.number}"
    return _print(options, {"exercise": str(path), "is_new": is_new, "readme": str(readme)}, told)


def run_check(options: argparse.Namespace) -> int:
    results = {}
    for lab in _chosen(options):
        if options.all and not workbook.exercise_of(lab, _folder(options)).is_file():
            gone = f"exercise.py is not there: `labs start {lab.number}` makes it anew"
            results[lab.key] = [Outcome(part.title, "not attempted", message=gone) for part in lab.parts]
            continue
        path = _written(lab, options)
        results[lab.key] = check_file(lab, [path], _labbook(options))
        history.note_outcomes(_labbook(options), lab, results[lab.key])
    told = "\n\n".join(f"lab {key}\n\n{all_as_text(outcomes)}" for key, outcomes in results.items())
    fields = {key: [outcome.as_json() for outcome in outcomes] for key, outcomes in results.items()}
    _print(options, fields, told)
    return 0 if all(one.passed for outcomes in results.values() for one in outcomes) else NOT_ALL_PASSED


def run_hint(options: argparse.Namespace) -> int:
    lab = find_lab(options.lab)
    num_given = history.hints_given(_labbook(options), lab)
    number = min(num_given, NUM_HINTS - 1)
    if num_given < NUM_HINTS:
        history.note(_labbook(options), history.HINTED, lab, hint=number + 1)
    told = f"Hint {number + 1} of {NUM_HINTS} for lab {lab.key}:\n\n{lab.hints[number]}"
    if number == NUM_HINTS - 1:
        told += f"\n\nThis was the last one; `labs solution {lab.number}` shows a solution."
    return _print(options, {"lab": lab.key, "number": number + 1, "hint": lab.hints[number]}, told)


def run_solution(options: argparse.Namespace) -> int:
    lab = find_lab(options.lab)
    if not options.yes and not _agreed(f"Show the solution of lab {lab.key}? It will be noted in your labbook. [y/N] "):
        return _print(options, {"lab": lab.key, "solution": None}, "Not shown.")
    history.note(_labbook(options), history.SOLVED, lab)
    text = lab.solution.read_text(encoding="utf-8")
    return _print(options, {"lab": lab.key, "solution": text}, text)


def run_measure(options: argparse.Namespace) -> int:
    from labs.kit.exercises import measure

    lab = find_lab(options.lab)
    record = measure.measured(lab, _written(lab, options), _labbook(options), options.model)
    return _print(options, record, measure.as_text(record))


def run_progress(options: argparse.Namespace) -> int:
    from labs.kit.exercises import progress

    standings = history.standings(_labbook(options), all_labs())
    _print(options, {"labs": [progress.as_dict(one) for one in standings]}, progress.as_text(standings))
    if options.figure is not None:
        figure = progress.over_time(_labbook(options), options.figure)
        print(f"{options.figure}: {figure.sentence}", file=sys.stderr)
    return 0


def _print(options: argparse.Namespace, fields: dict[str, Any], text: str) -> int:
    print(json.dumps(fields) if options.json else text)
    return 0


def _chosen(options: argparse.Namespace) -> list[Lab]:
    if options.all == (options.lab is not None):
        raise LabError("name one lab, or give --all for every one that you have started")
    if not options.all:
        return [find_lab(options.lab)]
    known = history.touched(_labbook(options))
    started = [lab for lab in all_labs() if lab.key in known or workbook.exercise_of(lab, _folder(options)).is_file()]
    if not started:
        raise LabError(f"no lab was started in {_folder(options)}: `labs start 01` is the first")
    return started


def _written(lab: Lab, options: argparse.Namespace) -> Path:
    path = workbook.exercise_of(lab, _folder(options))
    if not path.is_file():
        raise LabError(f"{path} is not there: `labs start {lab.number}` makes it")
    return path


def _status(standing: history.Standing, options: argparse.Namespace) -> str:
    if standing.is_passed:
        return "passed"
    if standing.num_passed:
        return f"{standing.num_passed} of {len(standing.lab.parts)} passed"
    return "started" if workbook.exercise_of(standing.lab, _folder(options)).is_file() else "-"


def _agreed(question: str) -> bool:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _folder(options: argparse.Namespace) -> Path:
    return options.folder.expanduser().absolute() if options.folder else workbook.default_folder()


def _labbook(options: argparse.Namespace) -> Path:
    return options.labbook.expanduser().absolute() if options.labbook else default_labbook()
