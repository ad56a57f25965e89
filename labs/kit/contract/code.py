"""What the code of a notebook may hold: parameters as literals, imports in one place, nothing from elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from labs.kit.contract.cells import IGNORE_MARKER, code_cells, name_of, prose_cells, syntax_tree, tagged
from labs.kit.parameters import NAMES

_FROM_ELSEWHERE = re.compile(r"!\[[^\]]*\]\(\s*https?:|<(?:img|iframe|link)\b[^>]*https?:|<script", re.IGNORECASE)
_ABSOLUTE_PATH = re.compile(r"""["'](?:/(?:home|root|Users|tmp|work|var|opt|etc|mnt)\b|[A-Z]:\\)""")
_OPENS_A_FILE = {"open", "read_text", "write_text"}


def parameters_are_literals(notebook: NotebookNode) -> Iterator[str]:
    cells = tagged(notebook, "parameters")
    if len(cells) != 1:
        yield f"{len(cells)} cells have the tag parameters, where one is right"
    for cell in cells:
        tree = syntax_tree(cell)
        assigned = [node for node in (tree.body if tree else []) if isinstance(node, ast.Assign)]
        names = [target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)]
        if tuple(names) != NAMES or not all(isinstance(node.value, ast.Constant) for node in assigned):
            yield f"{name_of(cell)} assigns one literal each to {', '.join(NAMES)}, and does nothing else"


def imports_stand_in_one_cell(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        tree = syntax_tree(cell)
        imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)) if tree else False
        if imports and "imports" not in cell.metadata.get("tags", []):
            yield f"{name_of(cell)} imports something: move it to the cell with the tag imports"
    if len(tagged(notebook, "imports")) > 1:
        yield "more than one cell has the tag imports"


def has_one_seed(notebook: NotebookNode) -> Iterator[str]:
    seeds = re.findall(r"^SEED = \d+$", "\n".join(cell.source for cell in code_cells(notebook)), re.MULTILINE)
    if len(seeds) != 1:
        yield f"{len(seeds)} lines set SEED, where one is right"


def files_are_opened_as_utf8(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        for call in ast.walk(syntax_tree(cell) or ast.Module([], [])):
            if not isinstance(call, ast.Call):
                continue
            called = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            if called in _OPENS_A_FILE and not any(keyword.arg == "encoding" for keyword in call.keywords):
                yield f'{name_of(cell)} calls {called} without encoding="utf-8"'


def nothing_comes_from_elsewhere(notebook: NotebookNode) -> Iterator[str]:
    for cell in prose_cells(notebook):
        if _FROM_ELSEWHERE.search(cell.source):
            yield f"{name_of(cell)} shows an image or runs a script from elsewhere: notebooks work offline"
    for cell in code_cells(notebook):
        if _ABSOLUTE_PATH.search(cell.source):
            yield f"{name_of(cell)} names a path of one machine: paths come from the package"
        if re.search(r"^\s*[!%]|\binput\(|\bclear_output\b|\bplt\b|pyplot", cell.source, re.MULTILINE):
            yield f"{name_of(cell)} uses a magic, input, clear_output or pyplot, which cannot be compared or read aloud"


def markers_are_whole_lines(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        for line in cell.source.splitlines():
            if "NBVAL_" in line and line.strip() != IGNORE_MARKER:
                yield f"{name_of(cell)} has the marker {line.strip()!r}: the whole line is {IGNORE_MARKER!r}"


RULES = (
    parameters_are_literals,
    imports_stand_in_one_cell,
    has_one_seed,
    files_are_opened_as_utf8,
    nothing_comes_from_elsewhere,
    markers_are_whole_lines,
)
