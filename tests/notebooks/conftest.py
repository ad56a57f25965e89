"""Notebooks, executed from a test: for what nbval cannot see, such as a server that the notebook did not start."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from labs.kit.parameters import checkout

CELL_TIMEOUT_S = 100
FOLDER = checkout() / "notebooks"
ExecuteNotebook = Callable[..., dict[str, str]]


@pytest.fixture(scope="session")
def execute_notebook() -> ExecuteNotebook:
    """`execute_notebook("00_first_measurement", LAB_MODEL="tiny")`: what each code cell printed, by the cell's id.

    In fast mode, with no other LAB_* variable than those given; records go to the labbook of the tests, or to
    LAB_LABBOOK. A cell that raises, raises here.
    """

    def execute(name: str, **environment: str) -> dict[str, str]:
        notebook: Any = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        place = {"metadata": {"path": str(FOLDER)}}
        client = NotebookClient(notebook, timeout=CELL_TIMEOUT_S, kernel_name="python3", resources=place)
        client.execute(env=surroundings(environment))
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        return {cell.id: "".join(output.get("text", "") for output in cell.outputs) for cell in cells}

    return execute


def surroundings(given: dict[str, str]) -> dict[str, str]:
    """The environment of a kernel: ours, less the parameters of whoever runs the tests. It imports this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    path = os.pathsep.join([str(checkout()), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "LAB_FAST": "1", **given}
