"""The parts that a notebook has, and its size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from nbformat import NotebookNode

from labs.kit.contract.cells import code_cells, code_lines, name_of, num_words, prose_cells, tagged, texts_of_outputs

MIN_CELLS, MAX_CELLS = 25, 45
MAX_MEDIAN_CODE_LINES, MAX_CODE_LINES = 5, 30
MIN_MEDIAN_WORDS, MAX_MEDIAN_WORDS = 25, 45
MIN_QUESTIONS, MAX_QUESTIONS = 3, 6
NEEDED_TAGS = (
    *("parameters", "imports", "prediction", "baseline", "negative-control"),
    *("break", "try-it", "quiz", "records"),
)

_TIMES = r"\*\*Time\*\*.*\d+ minutes.*\d+ seconds.*fast.*\d+.*full"
_OPENING_PARTS = {
    "a title": r"^# \d\d \S",
    "objectives (**Afterwards you can**)": r"\*\*Afterwards you can\*\*",
    "prerequisites (**You need**)": r"\*\*You need\*\*",
    "minutes to read, and seconds to run in fast and in full mode (**Time**)": _TIMES,
}


def opens_with_its_purpose(notebook: NotebookNode) -> Iterator[str]:
    first = notebook.cells[0].source if notebook.cells else ""
    for part, pattern in _OPENING_PARTS.items():
        if not re.search(pattern, first, re.MULTILINE | re.DOTALL):
            yield f"the first cell lacks {part}"
    paragraphs = [part.strip() for part in first.split("\n\n")]
    purpose = paragraphs[1] if len(paragraphs) > 1 else ""
    if len(re.findall(r"[.!?](?:\s|$)", purpose)) != 1:
        yield "below the title stands one sentence that says what will be shown"


def has_every_part(notebook: NotebookNode) -> Iterator[str]:
    for tag in NEEDED_TAGS:
        if not tagged(notebook, tag):
            yield f"no cell has the tag {tag}"
    prose = "\n".join(cell.source for cell in prose_cells(notebook))
    for heading in ("Limits", "References"):
        if not re.search(rf"^#+ {heading}$", prose, re.MULTILINE):
            yield f"the section {heading} is missing"


def has_the_right_size(notebook: NotebookNode) -> Iterator[str]:
    num_cells = len(notebook.cells)
    if not MIN_CELLS <= num_cells <= MAX_CELLS:
        yield f"{num_cells} cells, where {MIN_CELLS} to {MAX_CELLS} are right"
    lines = [len(code_lines(cell)) for cell in code_cells(notebook)]
    if lines and median(lines) > MAX_MEDIAN_CODE_LINES:
        yield f"code cells have {median(lines):g} lines at the median, where {MAX_MEDIAN_CODE_LINES} are the most"
    words = [num_words(cell) for cell in prose_cells(notebook)]
    if words and not MIN_MEDIAN_WORDS <= median(words) <= MAX_MEDIAN_WORDS:
        right = f"{MIN_MEDIAN_WORDS} to {MAX_MEDIAN_WORDS} are right"
        yield f"text cells have {median(words):g} words at the median, where {right}"
    for cell in code_cells(notebook):
        if len(code_lines(cell)) > MAX_CODE_LINES:
            yield f"{name_of(cell)} has {len(code_lines(cell))} lines, where {MAX_CODE_LINES} are the most"


def has_a_quiz_of_the_right_length(notebook: NotebookNode) -> Iterator[str]:
    for cell in tagged(notebook, "quiz"):
        printed = "\n".join(texts_of_outputs(cell))
        num_questions = len(re.findall(r"^Question \d+:", printed, re.MULTILINE))
        if not MIN_QUESTIONS <= num_questions <= MAX_QUESTIONS:
            right = f"{MIN_QUESTIONS} to {MAX_QUESTIONS} are right"
            yield f"{name_of(cell)} prints {num_questions} questions, where {right}"


def predicts_before_it_measures(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        if "prediction" in cell.metadata.get("tags", []):
            return
        if re.search(r"\bmeasure\(", cell.source):
            yield f"{name_of(cell)} measures before anything was predicted"
            return


RULES = (
    opens_with_its_purpose,
    has_every_part,
    has_the_right_size,
    has_a_quiz_of_the_right_length,
    predicts_before_it_measures,
)
