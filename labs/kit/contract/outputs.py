"""What the stored outputs must be: there, of a whole run, free of chance where they are compared, readable aloud."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from labs.kit.contract.cells import code_cells, is_ignored, name_of, texts_of_outputs

_VOLATILE = re.compile(r"\d ?(?:ms|s|seconds|tokens/s)\b|127\.0\.0\.1:\d|\b20\d\d-\d\d-\d\dT|\b0x[0-9a-f]{6}")
_PATH = re.compile(r"(?:^|[\s\"'(=])(?:/(?:home|root|Users|tmp|work|var|opt|private)/|[A-Z]:\\)", re.MULTILINE)
_WIDGET = "application/vnd.jupyter.widget-view+json"


def come_from_one_whole_run(notebook: NotebookNode) -> Iterator[str]:
    counts = [cell.execution_count for cell in code_cells(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        yield "the execution counts are not 1, 2, 3, ...: restart the kernel and run all cells"
    for cell in code_cells(notebook):
        if any(output.output_type == "error" for output in cell.outputs):
            yield f"{name_of(cell)} ended with an error"


def volatile_numbers_are_ignored(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        if not is_ignored(cell) and any(_VOLATILE.search(text) for text in texts_of_outputs(cell)):
            yield f"{name_of(cell)} is compared, yet its output holds a time, an address or a date"


def ignored_cells_are_followed_by_compared_ones(notebook: NotebookNode) -> Iterator[str]:
    waiting: NotebookNode | None = None
    for cell in code_cells(notebook):
        if is_ignored(cell):
            if waiting is not None:
                yield f"{name_of(waiting)} is ignored, and no compared output stands between it and {name_of(cell)}"
            waiting = cell
        elif cell.outputs:
            waiting = None
    if waiting is not None:
        yield f"{name_of(waiting)} is ignored, and no compared output follows it"


def figures_say_what_they_show(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        said = "\n".join(output.get("text", "") for output in cell.outputs)
        for output in cell.outputs:
            if "image/png" not in output.get("data", {}):
                continue
            sentence = output.data.get("text/plain", "")
            if output.metadata.get("image/png", {}).get("alt") != sentence or not re.search(r"\d", sentence):
                yield f"{name_of(cell)} shows a figure whose text and alt are not one sentence with numbers"
            elif sentence not in said:
                yield f"{name_of(cell)} shows a figure without printing its sentence"


def widgets_have_a_text_twin(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        has_widget = any(_WIDGET in output.get("data", {}) for output in cell.outputs)
        if has_widget and not any(output.output_type == "stream" for output in cell.outputs):
            yield f"{name_of(cell)} shows a widget and prints no text twin"


def outputs_name_no_machine(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        if any(_PATH.search(text) for text in texts_of_outputs(cell)):
            yield f"{name_of(cell)} shows a path of the machine it ran on"


RULES = (
    come_from_one_whole_run,
    volatile_numbers_are_ignored,
    ignored_cells_are_followed_by_compared_ones,
    figures_say_what_they_show,
    widgets_have_a_text_twin,
    outputs_name_no_machine,
)
