"""Records as CSV: the documented columns, and no text that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.export import COLUMNS, as_csv, harmless
from tests.labbook.examples import cold_warm


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_record_is_one_row_with_the_documented_columns() -> None:
    interval = {"value": 0.05, "low": 0.04, "high": 0.07}
    (row,) = table(as_csv([cold_warm(warm_over_cold_interval=interval)]))
    assert list(row) == ["number", *COLUMNS]
    assert {name: row[name] for name in ("number", "label", "cold_s", "warm_p50_s", "warm_count")} == {
        **{"number": "1", "label": "on", "cold_s": "4.0", "warm_p50_s": "0.2", "warm_count": "3"},
    }
    assert (row["warm_over_cold_low"], row["hits_tokens"], row["first_error"]) == ("0.04", "1776", "")


def test_everything_else_that_is_no_list_has_its_dotted_place() -> None:
    first, second = table(as_csv([cold_warm(), {"id": 7, "deep": {"er": {"x": True}}}], everything=True))
    assert (first["signals.clock.supports"], first["id"], "requests" in first) == ("reused", "", False)
    assert (second["id"], second["deep.er.x"], second["cold_s"]) == ("7", "True", "")
    assert list(first) == list(second)


def test_no_record_gives_the_columns_alone() -> None:
    assert as_csv([]).splitlines() == [",".join(["number", *COLUMNS])]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", " =1", '=HYPERLINK("x")']
)
def test_a_text_that_a_spreadsheet_would_run_is_text(text: str) -> None:
    (row,) = table(as_csv([cold_warm(label=text)]))
    assert row["label"] == "'" + text


@settings(deadline=None)  # machines that are busy are no fault
@given(st.text())
def test_no_cell_begins_as_a_formula_and_the_text_is_kept(text: str) -> None:
    cell = harmless(text)
    assert cell.removeprefix("'") == text or cell == text
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_negative_number_is_a_number_and_a_hostile_name_is_none() -> None:
    text = as_csv([{"=cmd": -1.5}], everything=True)
    assert text.splitlines()[0].endswith(",'=cmd") and text.splitlines()[1].endswith(",-1.5")


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labbook:
    monkeypatch.setenv("LABBOOK", str(tmp_path / "labbook.md"))
    kept = Labbook(tmp_path / "labbook.md")
    kept.append(cold_warm(label='größer, "so"\nfort \ud800'))
    return kept


def test_the_command_writes_to_standard_output_or_to_a_new_file(book: Labbook, tmp_path: Path, capsys) -> None:
    assert labbook(["export"]) == 0
    out = capsys.readouterr().out
    assert len(table(out)) == 1
    file = tmp_path / "runs.csv"
    assert labbook(["export", "--out", str(file)]) == 0
    assert table(file.read_text(encoding="utf-8"))[0]["label"] == 'größer, "so"\nfort \\ud800'
    assert labbook(["export", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["number"] == 1


def test_a_file_that_is_there_is_replaced_by_force_only_and_the_labbook_never(
    book: Labbook, tmp_path: Path, capsys
) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("mine", encoding="utf-8")
    assert labbook(["export", "--out", str(file)]) == 2
    assert "is there already" in capsys.readouterr().err and file.read_text(encoding="utf-8") == "mine"
    before = book.path.read_bytes()
    assert labbook(["export", "--force", "--out", str(book.path)]) == 2
    assert book.path.read_bytes() == before
    assert labbook(["export", "--force", "--out", str(file)]) == 0
    assert file.read_text(encoding="utf-8").startswith("number,")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labbook.md", "runs.csv"]
