"""The outputs of a run back into the notebook that is committed, in canonical form."""

from __future__ import annotations

from pathlib import Path

import nbformat

from labs.kit.contract.canonical import canonical_text
from labs.kit.contract.cells import code_cells, tagged


def store(executed: Path, notebook: Path) -> None:
    """Write what `executed` printed into `notebook`: without the cell of parameters, counted from 1."""
    copy = nbformat.read(executed, as_version=4)
    injected = tagged(copy, "injected-parameters")
    copy.cells = [cell for cell in copy.cells if cell not in injected]
    for count, cell in enumerate(code_cells(copy), start=1):
        cell["execution_count"] = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output["execution_count"] = count
    part = notebook.with_suffix(".ipynb.part")
    part.write_text(canonical_text(copy), encoding="utf-8")
    part.replace(notebook)
