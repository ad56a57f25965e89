"""The contract that every notebook keeps, as a program: `python -m labs.kit.contract notebooks/*.ipynb`.

It checks what can be checked without running anything: the parts a notebook has, its size, its code, and the outputs
that are kept with it. Whether the outputs are true is nbval's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat

from labs.kit.contract import code, outputs, structure
from labs.kit.contract.canonical import canonical_text

Rule = Callable[[nbformat.NotebookNode], Iterator[str]]
RULES: tuple[Rule, ...] = (*structure.RULES, *code.RULES, *outputs.RULES)


def broken_rules(path: Path) -> list[str]:
    """What is wrong with a notebook file, one sentence each, with the cell's id; empty when all is well."""
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    found = [sentence for rule in RULES for sentence in rule(notebook)]
    if text != canonical_text(notebook):
        found.append("the file is not in canonical form: run `python -m labs.kit.contract --fix` on it")
    return found
