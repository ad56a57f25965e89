"""A notebook run to its end with other parameters: what each cell printed, by the cell's id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from labs.kit.parameters import checkout


def executed(name: str, labbook: Path, **parameters: str) -> dict[str, str]:
    """`parameters` are LAB_MODEL and the like without their head: `model="tiny"`, `base_url=...`. Fast mode."""
    notebook: Any = nbformat.read(checkout() / "notebooks" / f"{name}.ipynb", as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        for parameter, value in {"fast": "1", "labbook": str(labbook), **parameters}.items():
            patch.setenv(f"LAB_{parameter.upper()}", value)
        patch.setenv("PYTHONPATH", str(checkout()))
        NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {cell.id: "".join(output.get("text", "") for output in cell.outputs) for cell in cells}
