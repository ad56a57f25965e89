"""Small questions about a notebook's cells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

IGNORE_MARKER = "# NBVAL_IGNORE_OUTPUT"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def tagged(notebook: NotebookNode, tag: str) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def name_of(cell: NotebookNode) -> str:
    return f"cell {cell.get('id', '?')}"


def code_lines(cell: NotebookNode) -> list[str]:
    return [line for line in cell.source.splitlines() if line.strip()]


def num_words(cell: NotebookNode) -> int:
    return sum(any(character.isalnum() for character in word) for word in cell.source.split())


def is_ignored(cell: NotebookNode) -> bool:
    """True when comparison skips this cell. nbval wants the marker to be the whole line."""
    return any(line.strip() == IGNORE_MARKER for line in cell.source.splitlines())


def syntax_tree(cell: NotebookNode) -> ast.Module | None:
    try:
        return ast.parse(cell.source)
    except SyntaxError:
        return None


def texts_of_outputs(cell: NotebookNode) -> Iterator[str]:
    """What the stored outputs of a cell say in words."""
    for output in cell.get("outputs", []):
        data: dict[str, Any] = output.get("data", {})
        yield str(output.get("text", "") or data.get("text/plain", ""))
