"""Every notebook keeps the contract, and the linter notices each way to break it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from labs.kit.contract import broken_rules
from labs.kit.contract.__main__ import main
from labs.kit.contract.canonical import canonical_text
from labs.kit.parameters import checkout

NOTEBOOKS = sorted((checkout() / "notebooks").glob("*.ipynb"))
Notebook = Any
Break = Callable[[Notebook], None]


def cell(notebook: Notebook, name: str) -> Any:
    return next(cell for cell in notebook.cells if cell.id == name)


def replaced(name: str, old: str, new: str) -> Break:
    def change(notebook: Notebook) -> None:
        source = cell(notebook, name).source
        assert old in source
        cell(notebook, name).source = source.replace(old, new)

    return change


def untagged(*names: str) -> Break:
    def change(notebook: Notebook) -> None:
        for name in names:
            cell(notebook, name).metadata.clear()

    return change


def appended(name: str, code: str) -> Break:
    def change(notebook: Notebook) -> None:
        cell(notebook, name).source += f"\n{code}"

    return change


def printing(name: str, text: str) -> Break:
    def change(notebook: Notebook) -> None:
        cell(notebook, name).outputs[0].text = text

    return change


def without_output(name: str) -> Break:
    return lambda notebook: cell(notebook, name).outputs.clear()


def without_printed_text(name: str) -> Break:
    def change(notebook: Notebook) -> None:
        shown = cell(notebook, name).outputs
        shown[:] = [output for output in shown if output.output_type != "stream"]

    return change


def without_alt(notebook: Notebook) -> None:
    for output in cell(notebook, "figure").outputs:
        output.metadata = nbformat.from_dict({}) if "metadata" in output else None


def with_a_stored_error(notebook: Notebook) -> None:
    cell(notebook, "control").outputs = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]


def with_too_few_cells(notebook: Notebook) -> None:
    del notebook.cells[20:]


def with_long_code(notebook: Notebook) -> None:
    cell(notebook, "control").source += "\nx = 1" * 31


def with_long_code_everywhere(notebook: Notebook) -> None:
    for one in notebook.cells:
        one.source += "\nx = 1" * 5 if one.cell_type == "code" else ""


def with_hardly_any_text(notebook: Notebook) -> None:
    for one in notebook.cells[1:]:
        if one.cell_type == "markdown" and "## Limits" not in one.source:
            one.source = "Look."


def not_run_from_the_top(notebook: Notebook) -> None:
    cell(notebook, "control").execution_count = 99


BROKEN: dict[str, tuple[Break, str]] = {
    "no title": (replaced("title", "# 00 ", "00 "), "lacks a title"),
    "no objectives": (replaced("title", "**Afterwards you can**", "Afterwards"), "lacks objectives"),
    "no prerequisites": (replaced("title", "**You need**", "You need"), "lacks prerequisites"),
    "no times": (replaced("title", "minutes to read", "a while"), "lacks minutes to read"),
    "two sentences of purpose": (replaced("title", "You will send", "Hello. You will send"), "one sentence"),
    "no prediction": (untagged("predict-warm", "predict-off"), "tag prediction"),
    "measured first": (untagged("predict-warm"), "measure-on measures before anything was predicted"),
    "no baseline": (untagged("measure-off"), "tag baseline"),
    "no control": (untagged("control"), "tag negative-control"),
    "no break": (untagged("clock-in-front"), "tag break"),
    "nothing to try": (untagged("try-it"), "tag try-it"),
    "no quiz": (untagged("quiz"), "tag quiz"),
    "no records": (untagged("records"), "tag records"),
    "no limits": (replaced("limits", "## Limits", "Limits"), "section Limits"),
    "no references": (replaced("limits", "## References", "References"), "section References"),
    "a quiz of one": (printing("quiz", "Question 1: why?"), "prints 1 questions"),
    "too short": (with_too_few_cells, "20 cells"),
    "one long cell": (with_long_code, "32 lines"),
    "long cells": (with_long_code_everywhere, "lines at the median"),
    "hardly any text": (with_hardly_any_text, "words at the median"),
    "a computed parameter": (replaced("parameters", 'BASE_URL = ""', "BASE_URL = str()"), "one literal each"),
    "an unknown parameter": (appended("parameters", "SIZE = 3"), "one literal each"),
    "an import elsewhere": (appended("control", "import json"), "control imports something"),
    "two seeds": (appended("session", "SEED = 1"), "2 lines set SEED"),
    "no encoding": (appended("control", "open('notes.txt')"), "calls open without encoding"),
    "an image from elsewhere": (replaced("limits", "## Limits", "![x](https://h/x.png)\n\n## Limits"), "elsewhere"),
    "a path of one machine": (appended("control", "place = '/home/me/labbook.md'"), "path of one machine"),
    "a magic": (appended("control", "%matplotlib inline"), "uses a magic"),
    "pyplot": (appended("control", "plt.show()"), "pyplot"),
    "a marker behind code": (appended("control", "x = 1  # NBVAL_IGNORE_OUTPUT"), "has the marker"),
    "not run from the top": (not_run_from_the_top, "execution counts"),
    "a stored error": (with_a_stored_error, "control ended with an error"),
    "a compared time": (printing("control", "it took 12.5 ms"), "output holds a time"),
    "a compared address": (printing("control", "http://127.0.0.1:4711/v1"), "output holds a time, an address"),
    "nothing compared after a measurement": (without_output("signals"), "times is ignored, and no"),
    "a figure without alt": (without_alt, "text and alt are not one sentence"),
    "a figure that is not printed": (without_printed_text("token-figure"), "without printing its sentence"),
    "a widget without a twin": (without_printed_text("quiz"), "no text twin"),
    "a path in an output": (printing("records", "saved in /home/me/labbook.md"), "path of the machine"),
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_the_contract(path: Path) -> None:
    assert broken_rules(path) == []


def test_there_is_a_first_notebook() -> None:
    assert [path.name for path in NOTEBOOKS][:1] == ["00_first_measurement.ipynb"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_notebook_is_noticed(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    break_it, expected = BROKEN[name]
    break_it(notebook)
    path = tmp_path / "broken.ipynb"
    path.write_text(canonical_text(notebook), encoding="utf-8")
    assert [sentence for sentence in broken_rules(path) if expected in sentence]


def test_what_a_front_end_leaves_in_the_file_is_noticed_and_taken_out(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    cell(notebook, "control").metadata["execution"] = {"iopub.execute_input": "2026-11-29T21:05:24Z"}
    notebook.metadata.kernelspec["name"] = "my-own-kernel"
    path = tmp_path / "saved.ipynb"
    nbformat.write(notebook, path)
    assert [sentence for sentence in broken_rules(path) if "canonical" in sentence]
    assert main(["--fix", str(path)]) == 0
    assert path.read_bytes() == NOTEBOOKS[0].read_bytes()


def test_the_command_names_the_file_and_the_rule_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    untagged("quiz")(notebook)
    path = tmp_path / "broken.ipynb"
    path.write_text(canonical_text(notebook), encoding="utf-8")
    assert main([str(path)]) == 1
    assert "broken.ipynb: no cell has the tag quiz" in capsys.readouterr().err
