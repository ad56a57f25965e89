"""`labs list | start | check | hint | solution | progress`."""

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
from labs.kit.parameters import default_labbook
from labs.kit.table import text_table

NOT_ALL_PASSED, WRONG_USAGE = 1, 2


def add_commands(commands: Any) -> None:
    """Add the commands of the labs to an argparse subparsers object; each sets `run`, which returns an exit status."""
    _add(commands, "list", run_list, "the labs, and how far you are", json=True)
    _add(commands, "start", run_start, "copy the exercise of a lab to mylabs; never overwrites", lab="one")
    _add(commands, "check", run_check, "check what you wrote", lab="one or --all", json=True)
    _add(commands, "hint", run_hint, f"the next of {NUM_HINTS} hints", lab="one")
    _add(commands, "solution", run_solution, "show a solution; asks first", lab="one", yes=True)
    _add(commands, "progress", run_progress, "what you tried and passed, from the labbook", json=True, figure=True)


def _add(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    about: str,
    *,
    lab: str = "",
    json: bool = False,
    yes: bool = False,
    figure: bool = False,
) -> None:
    parser = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    if lab:
        optional = {"nargs": "?"} if "--all" in lab else {}
        parser.add_argument("lab", help='a number, a name or a folder: "3", "eviction", "03_eviction"', **optional)
    if "--all" in lab:
        parser.add_argument("--all", action="store_true", help="every lab that was started")
    if json:
        parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    if yes:
        parser.add_argument("--yes", action="store_true", help="do not ask")
    if figure:
        parser.add_argument("--figure", type=Path, metavar="FILE.png", help="also draw it over time")
    parser.add_argument("--folder", type=Path, default=None, help="where your copies are (default: mylabs, or MYLABS)")
    parser.add_argument("--labbook", type=Path, default=None, help="where your progress is kept (default: labbook.md)")
    parser.set_defaults(run=run)


def run_list(options: argparse.Namespace) -> int:
    standings = history.standings(_labbook(options), all_labs())
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
        for standing in standings
    ]
    if options.json:
        print(json.dumps({"labs": rows}))
        return 0
    headings = ["lab", "what you write", "difficulty (1-5)", "importance (1-5)", "minutes", "lines", "status"]
    print(text_table(headings, [list(row.values()) for row in rows]))
    return 0


def run_start(options: argparse.Namespace) -> int:
    lab = find_lab(options.lab)
    path, is_new = workbook.start(lab, _folder(options))
    if is_new:
        history.note(_labbook(options), history.STARTED, lab)
    print(f"{'wrote' if is_new else 'kept, as you have it:'} {path}")
    print(f"read   {lab.folder / 'README.md'}")
    print(f"then   labs check {lab.number}")
    return 0


def run_check(options: argparse.Namespace) -> int:
    labs = _chosen(options)
    results = {}
    for lab in labs:
        path = workbook.exercise_of(lab, _folder(options))
        if not path.is_file():
            raise LabError(f"{path} is not there: `labs start {lab.number}` makes it")
        results[lab.key] = check_file(lab, [path], _labbook(options))
        history.note_outcomes(_labbook(options), lab, results[lab.key])
    if options.json:
        print(json.dumps({key: [outcome.as_dict() for outcome in outcomes] for key, outcomes in results.items()}))
    else:
        print("\n\n".join(f"lab {key}\n\n{all_as_text(outcomes)}" for key, outcomes in results.items()))
    return 0 if all(one.passed for outcomes in results.values() for one in outcomes) else NOT_ALL_PASSED


def run_hint(options: argparse.Namespace) -> int:
    lab = find_lab(options.lab)
    number = min(history.hints_given(_labbook(options), lab), NUM_HINTS - 1)
    print(f"Hint {number + 1} of {NUM_HINTS} for lab {lab.key}:\n\n{lab.hints[number]}")
    history.note(_labbook(options), history.HINTED, lab, hint=number + 1)
    return 0


def run_solution(options: argparse.Namespace) -> int:
    lab = find_lab(options.lab)
    if not options.yes and not _agreed(f"Show the solution of lab {lab.key}? It will be noted in your labbook. [y/N] "):
        print("Not shown.")
        return 0
    history.note(_labbook(options), history.SOLVED, lab)
    print(lab.solution.read_text(encoding="utf-8"))
    return 0


def run_progress(options: argparse.Namespace) -> int:
    from labs.kit.exercises import progress

    standings = history.standings(_labbook(options), all_labs())
    if options.json:
        print(json.dumps({"labs": [progress.as_dict(standing) for standing in standings]}))
    else:
        print(progress.as_text(standings))
    if options.figure is not None:
        figure = progress.over_time(_labbook(options), options.figure)
        print(
            figure.sentence if not options.json else f"wrote {options.figure}",
            file=sys.stderr if options.json else sys.stdout,
        )
    return 0


def _chosen(options: argparse.Namespace) -> list[Lab]:
    if options.all == (options.lab is not None):
        raise LabError("name one lab, or give --all for every one that you have started")
    if not options.all:
        return [find_lab(options.lab)]
    started = [lab for lab in all_labs() if workbook.exercise_of(lab, _folder(options)).is_file()]
    if not started:
        raise LabError(f"no lab was started in {_folder(options)}: `labs start 01` is the first")
    return started


def _status(standing: history.Standing, options: argparse.Namespace) -> str:
    if standing.is_passed:
        return "passed"
    if standing.num_passed:
        return f"{standing.num_passed} of {len(standing.lab.parts)} passed"
    return "started" if workbook.exercise_of(standing.lab, _folder(options)).is_file() else "-"


def _agreed(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _folder(options: argparse.Namespace) -> Path:
    return options.folder.expanduser().absolute() if options.folder else workbook.default_folder()


def _labbook(options: argparse.Namespace) -> Path:
    return options.labbook.expanduser().absolute() if options.labbook else default_labbook()
