"""Which figure draws a record."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from labbook import plot
from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.errors import UsageError
from labbook.figures import DrawnFigure
from tests.labbook.examples import cold_warm


def test_a_figure_of_another_experiment_hooks_in_with_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = types.ModuleType("labbook_growth")
    drawn: list[tuple[object, object]] = []

    def growth_line(record: object, path: object = None) -> DrawnFigure:
        drawn.append((record, path))
        return DrawnFigure("a line", "n = 1", None)  # type: ignore[arg-type]

    module.growth_line = growth_line  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "labbook_growth", module)
    monkeypatch.setitem(plot.FIGURES, "growth", ("labbook_growth", "growth_line"))
    record = cold_warm(experiment="growth")
    assert plot.figure_of([record], tmp_path / "a.png").sentence == "a line"
    assert drawn == [(record, tmp_path / "a.png")]


def test_a_burst_that_somebody_edited_is_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match="holds no burst"):
        plot.figure_of([{"experiment": "burst"}])
    with pytest.raises(UsageError, match="this burst record lacks what its figure draws"):
        plot.figure_of([{"experiment": "burst", "cold": {}, "bursts": {}, "burst_requests": 4}])


def test_equal_records_and_labels_keep_their_own_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Labbook(tmp_path / "labbook.md")
    for _ in range(2):
        book.append(cold_warm())
    assert labbook(["plot", "2", "on", "--labbook", str(book.path)]) == 0
    assert (tmp_path / "labbook-figures" / "002-002.png").exists()
