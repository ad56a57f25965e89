"""One form for a notebook file, so that a change in it is a change in what it says."""

from __future__ import annotations

import copy

import nbformat
from nbformat import NotebookNode

_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def canonical_text(notebook: NotebookNode) -> str:
    """The notebook with outputs and counts, without the state of widgets, times, and the names of a machine's kernels.

    Neighbouring pieces of one stream are joined: where they were split is chance.
    """
    canonical = copy.deepcopy(notebook)
    canonical["metadata"] = nbformat.from_dict(_METADATA)
    for cell in canonical.cells:
        tags = cell.metadata.get("tags", [])
        cell["metadata"] = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            cell["outputs"] = _joined(cell.outputs)
    text: str = nbformat.writes(canonical, version=4)
    return text if text.endswith("\n") else text + "\n"


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last and last.get("name") == output.name:
            last["text"] += output.text
        else:
            joined.append(output)
    return joined
