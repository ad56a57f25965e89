"""`labs list | start | check | hint | solution | measure | progress` and `check(...)`, as a learner uses them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from labbook.book import Labbook
from labs.check import check
from labs.cli import main
from labs.kit.exercises.lab import find_lab


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MYLABS", str(tmp_path / "mylabs"))
    monkeypatch.setenv("LABBOOK", str(tmp_path / "labbook.md"))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    capsys.readouterr()
    assert main(arguments) == status
    return capsys.readouterr().out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    return json.loads(run(capsys, *arguments, "--json", status=status))


def solve(place: Path, asked: str) -> Path:
    lab = find_lab(asked)
    path = place / "mylabs" / lab.key / "exercise.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lab.solution.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def experiments(place: Path) -> list[str]:
    return [record["experiment"] for record in Labbook(place / "labbook.md").records(strict=True)]


def test_starting_copies_the_stub_once_and_never_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "wrote" in run(capsys, "start", "03")
    path = place / "mylabs" / "03_eviction" / "exercise.py"
    path.write_text("# mine\n", encoding="utf-8")
    assert "kept, as you have it" in run(capsys, "start", "eviction")
    assert path.read_text(encoding="utf-8") == "# mine\n"
    assert experiments(place) == ["lab-start"]


def test_a_place_that_cannot_be_written_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "mylabs").write_text("a file", encoding="utf-8")
    assert main(["start", "1"]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_checking_before_starting_names_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "3"]) == 2
    assert "`labs start 03` makes it" in capsys.readouterr().err


def test_a_stub_is_checked_and_leaves_no_record(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "start", "3")
    assert "0 of 2 passed." in run(capsys, "check", "3", status=1)
    assert experiments(place) == ["lab-start"]


def test_passing_is_kept_in_the_labbook_and_shown_in_the_list(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solve(place, "3")
    assert "2 of 2 passed." in run(capsys, "check", "3")
    assert experiments(place) == ["lab-check", "lab-check"]
    row = next(line for line in run(capsys, "list").splitlines() if line.startswith("03_eviction"))
    assert row.endswith("passed")
    told = run_json(capsys, "progress")["labs"][2]
    assert (told["parts_passed"], told["tries"], told["saw_solution"]) == (2, 2, False) and told["passed_at"]


def test_all_that_was_started_is_checked_at_once_for_a_teacher(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solve(place, "3")
    run(capsys, "start", "9")
    told = run_json(capsys, "check", "--all", status=1)
    assert list(told) == ["03_eviction", "09_quantize"]
    assert [one["outcome"] for one in told["03_eviction"]] == ["passed", "passed"]
    assert {one["outcome"] for one in told["09_quantize"]} == {"not attempted"}


@pytest.mark.parametrize("arguments", [["check"], ["check", "3", "--all"]])
def test_one_lab_or_all_of_them(place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert "name one lab, or give --all" in capsys.readouterr().err


def test_hints_come_one_after_the_other_and_the_last_one_stays(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [run(capsys, "hint", "3").splitlines()[0] for _ in range(4)]
    assert [line.split(" for ")[0] for line in told] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]
    assert experiments(place) == ["lab-hint"] * 3
    assert "`labs solution 03` shows a solution" in run(capsys, "hint", "3")


def test_a_solution_is_shown_to_whoever_agrees_and_that_is_recorded(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for answered, is_shown in (("n\n", False), ("", False), ("y\n", True)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answered))
        assert ("class MyEviction" in run(capsys, "solution", "3")) is is_shown
    assert experiments(place) == ["lab-solution"]
    assert run_json(capsys, "progress")["labs"][2]["saw_solution"] is True


def test_progress_is_drawn_over_time(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solve(place, "3")
    run(capsys, "check", "3")
    run(capsys, "check", "3")  # passing again is no other pass
    run(capsys, "progress", "--figure", str(place / "progress.png"))
    assert (place / "progress.png").stat().st_size > 1000
    assert (place / "progress.txt").read_text(encoding="utf-8").startswith("So far 2 parts passed, ")


def test_what_was_written_runs_a_real_model_beside_the_engines_own(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solve(place, "3")
    record = run_json(capsys, "measure", "3", "--model", "tiny")
    ours, mine = record["counted"]["the engine's"], record["counted"]["yours"]
    assert record["same_answers"] and ours == mine
    assert ours["restored_tokens"] > 0 and ours["evicted_tokens"] > 0
    assert experiments(place) == ["lab-measure"]


@pytest.mark.parametrize("mistake", ["head_first", "first_come"])
def test_a_policy_that_is_wrong_restores_less_on_a_real_model(
    place: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    path = solve(place, "3")
    wrong = (find_lab("3").folder / "wrong" / f"{mistake}.py").read_text(encoding="utf-8")
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{wrong}", encoding="utf-8")
    record = run_json(capsys, "measure", "3", "--model", "tiny")
    assert record["counted"]["yours"]["restored_tokens"] < record["counted"]["the engine's"]["restored_tokens"]
    assert record["same_answers"]


@pytest.mark.parametrize("broken", ["def stranded((", "raise SystemExit(0)", "class MyEviction: pass"])
def test_what_cannot_run_is_told_in_a_line(place: Path, capsys: pytest.CaptureFixture[str], broken: str) -> None:
    path = solve(place, "3")
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{broken}\n", encoding="utf-8")
    assert main(["measure", "3", "--model", "tiny"]) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("labs: the engine cannot run on exercise.py (") and "`labs check 03` shows more" in told


def test_a_lab_whose_file_is_gone_is_told_among_all(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "start", "3")
    (place / "mylabs" / "03_eviction" / "exercise.py").unlink()
    told = run_json(capsys, "check", "--all", status=1)["03_eviction"]
    assert {one["outcome"] for one in told} == {"not attempted"} and "is not there" in told[0]["message"]


def test_a_lab_without_a_component_says_which_have_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solve(place, "8")
    assert main(["measure", "8"]) == 2
    assert "labs 01, 02, 03, 06 and 07" in capsys.readouterr().err


def test_check_in_a_notebook_uses_the_same_checks(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def stranded(cached: Any, parent_of: Any) -> set[Any]:
        return set()

    outcome = check(stranded)
    assert outcome.kind == "wrong" and "[wrong] stranded" in capsys.readouterr().out
    (record,) = Labbook(place / "labbook.md").records()
    assert (record["exercise"], record["outcome"], record["check"]) == ("03_eviction", "wrong", "the README's examples")
