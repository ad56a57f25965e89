"""What the runs came to, as a table and as one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labs.kit.parameters import Parameters
from labs.kit.table import text_table
from scripts.run_notebooks.run import Run, mode
from scripts.run_notebooks.settings import shown_base_url

# What a notebook may take on two idle CPU cores.
BUDGET_S = {"fast": 60, "full": 225}
_NUM_SLOWEST = 2
_NUM_SLOWEST_OF_ALL = 5


def as_text(runs: Sequence[Run], parameters: Parameters, copies: Path) -> str:
    rows = [(run.notebook, run.status, run.seconds, len(run.added), _slowest(run)) for run in runs]
    table = text_table(("notebook", "status", "seconds", "records", "slowest cells"), rows)
    return "\n".join([table, "", *_sentences(runs, parameters, copies)])


def as_object(runs: Sequence[Run], parameters: Parameters, copies: Path) -> dict[str, Any]:
    return {
        "mode": mode(parameters),
        "model": parameters.model_or_only,
        "base_url": shown_base_url(parameters),
        "labbook": str(parameters.labbook),
        "copies": str(copies),
        "seconds": round(sum(run.seconds for run in runs), 2),
        "runs": [run.record(parameters) for run in runs],
    }


def _sentences(runs: Sequence[Run], parameters: Parameters, copies: Path) -> Iterator[str]:
    failed = [run for run in runs if not run.has_passed]
    where = shown_base_url(parameters) or f"the engine with {parameters.model}"
    count = f"{len(runs)} notebook{'s' * (len(runs) != 1)}"
    seconds = sum(run.seconds for run in runs)
    passed = f"{len(runs) - len(failed)} passed" + (f", {len(failed)} did not" if failed else "")
    yield f"{count} on {where}, {mode(parameters)} mode: {seconds:,.0f} s, {passed}."
    cells = sorted(
        ((took, run.notebook, cell) for run in runs for cell, took in run.cell_seconds.items()), reverse=True
    )
    slowest = [f"{notebook[:2]} {cell} {took:.1f} s" for took, notebook, cell in cells[:_NUM_SLOWEST_OF_ALL]]
    if slowest:
        yield f"Slowest cells of all: {', '.join(slowest)}."
    yield f"Executed copies are in {copies}, records in {parameters.labbook}."
    budget_s = BUDGET_S[mode(parameters)]
    if slow := [run.notebook for run in runs if run.seconds > budget_s]:
        yield f"More than the {budget_s} s that one may take on two idle CPU cores: {', '.join(slow)}."
    for run in failed:
        yield f"{run.notebook} {run.status} {run.first_error}"


def _slowest(run: Run) -> str:
    return ", ".join(f"{cell} {seconds:.1f}" for cell, seconds in run.slowest_cells(_NUM_SLOWEST))
