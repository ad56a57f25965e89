#!/usr/bin/env python3
"""Run notebooks of the course, each in a process of its own, with checked parameters and an end in sight.

Executed copies lie in build/notebooks; every run appends a record to the labbook, with the seconds of each cell.

    .venv/bin/python scripts/run-notebooks.py                          # all, fast
    .venv/bin/python scripts/run-notebooks.py 00 05 -p MODEL=tiny
    .venv/bin/python scripts/run-notebooks.py 11 -p BASE_URL=http://127.0.0.1:8000/v1 -p MODEL=default_model

A base URL with a password is better given in LAB_BASE_URL: other users of the machine can read arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labbook.book import Labbook
from labbook.errors import LabbookError, ServerError, UsageError
from labbook.progress import progress
from labs.kit.parameters import Parameters, checkout
from minivllm.models.errors import ModelError
from scripts.run_notebooks.choice import choose
from scripts.run_notebooks.run import Run, mode
from scripts.run_notebooks.settings import require_storable, settings, with_model_of_server

ALL_PASSED, SOME_FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
TIMEOUT_S = {"fast": 900.0, "full": 3600.0}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        notebooks, parameters = _checked(options)
        parameters = with_model_of_server(parameters)
        _fetch(parameters)
        return _run_all(notebooks, parameters, options)
    except ServerError as error:
        return _fail(str(error), SOME_FAILED)
    except LabbookError as error:
        return _fail(str(error), WRONG_USAGE)
    except ModelError as error:
        return _fail(str(error), SOME_FAILED)
    except ModuleNotFoundError as error:
        return _fail(f"{error}: run `make notebooks`, which installs what is needed", SOME_FAILED)
    except KeyboardInterrupt:
        return _fail("stopped before the first notebook", INTERRUPTED)


def _checked(options: argparse.Namespace) -> tuple[list[Path], Parameters]:
    """What to run, and on what. Raises LabbookError before anything has run."""
    notebooks = choose(options.folder, options.notebooks)
    assignments = list(options.parameter)
    if options.full:
        assignments.append("FAST=false")
    if options.store:
        assignments.append(f"LABBOOK={options.copies / 'labbook.md'}")
    parameters = settings(assignments)
    if options.store:
        require_storable(parameters)
    try:
        options.copies.mkdir(parents=True, exist_ok=True)
        if options.store:
            parameters.labbook.unlink(missing_ok=True)  # what is stored depends on no older record
    except OSError as error:
        raise UsageError(f"the folder {options.copies} cannot be written: {error.strerror}; name another") from None
    Labbook(parameters.labbook).check_writable_place()
    return notebooks, parameters


def _run_all(notebooks: Sequence[Path], parameters: Parameters, options: argparse.Namespace) -> int:
    from scripts.run_notebooks.report import as_object, as_text

    runs: list[Run] = []
    status = ALL_PASSED
    try:
        for run in _each_run(notebooks, parameters, options):
            runs.append(run)
            status = status if run.has_passed else SOME_FAILED
    except LabbookError as error:
        status = _fail(str(error), SOME_FAILED)
    except KeyboardInterrupt:
        status = _fail("stopped; the runs that were over are recorded", INTERRUPTED)
    if options.json:
        print(json.dumps({"ok": status == ALL_PASSED, **as_object(runs, parameters, options.copies)}))
    elif runs:
        print(as_text(runs, parameters, options.copies))
    return status


def _each_run(notebooks: Sequence[Path], parameters: Parameters, options: argparse.Namespace) -> Iterator[Run]:
    """One by one: what is done is recorded, whatever comes after."""
    from scripts.run_notebooks.supervise import run_notebook

    timeout_s = options.timeout or TIMEOUT_S[mode(parameters)]
    with progress(sum(map(_num_code_cells, notebooks)), "cell") as step:
        for notebook in notebooks:
            copy = options.copies / notebook.name
            on_cell = partial(_show, step, notebook.stem)
            run = run_notebook(notebook, copy, parameters, timeout_s, on_cell)
            Labbook(parameters.labbook).append(run.record(parameters))
            if options.store and run.has_passed:
                _store(copy, notebook)
            yield run


def _show(step: Callable[..., None], notebook: str, cell: str) -> None:
    step(f"{notebook} {cell}")


def _fetch(parameters: Parameters) -> None:
    """Have the model here before the first notebook: its progress bar needs the terminal. Raises ModelError."""
    if parameters.starts_engine:
        from minivllm.models.registry import resolve

        resolve(parameters.model)


def _num_code_cells(notebook: Path) -> int:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return sum(cell["cell_type"] == "code" for cell in cells)


def _store(copy: Path, notebook: Path) -> None:
    from labs.kit.contract import broken_rules
    from scripts.run_notebooks.store import store

    store(copy, notebook)
    for sentence in broken_rules(notebook):
        print(f"run-notebooks: {notebook.name}: {sentence}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Run notebooks of the course through papermill, each in a process of its own.",
        epilog="Exit status: 0 all passed, 1 one did not (the others still ran), 2 wrong usage.",
    )
    add = parser.add_argument
    add("notebooks", nargs="*", metavar="NOTEBOOK", help="a number, a name or a file (all)")
    add("--full", action="store_true", help="the full sizes, as -p FAST=false (fast)")
    add(
        *("-p", "--parameter"),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="MODEL, FAST, BASE_URL or LABBOOK; else LAB_MODEL and so on",
    )
    add("--timeout", type=_seconds, metavar="SECONDS", help="end a notebook that takes longer (900 fast, 3600 full)")
    add("--copies", type=Path, default=checkout() / "build" / "notebooks", metavar="FOLDER", help="executed copies")
    add("--folder", type=Path, default=checkout() / "notebooks", help="where the notebooks are")
    add("--store", action="store_true", help="write the outputs of what passed back into the notebooks")
    add("--json", action="store_true", help="print one JSON object instead of the table")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return value


def _fail(message: str, status: int) -> int:
    print(f"run-notebooks: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
