"""Judging an answer ends, whatever the answer does, and tells the learner which of four things happened."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from labs.kit.exercises import judge as judging
from labs.kit.exercises.answering import check_file, find_part
from labs.kit.exercises.feedback import all_as_text, as_text
from labs.kit.exercises.judge import judge
from labs.kit.exercises.lab import Lab, LabError, find_lab
from labs.kit.exercises.outcome import Outcome
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.exercises.search import for_all

NOWHERE = Path("labbook.md")


def double(number: int) -> int:
    return number * 2


def is_twice(answer: Answer) -> None:
    @for_all(number=st.integers(0, 100))
    def twice(number: int) -> None:
        if answer.double(number) != 2 * number:
            raise Wrong("not twice as much", expected=2 * number, actual=answer.double(number), drawing=f"[ {number} ]")


PART = Part(("double",), (Check("twice", is_twice, "It adds something."),), "Doubling is useful.")


def outcome_of(function: Callable[..., Any]) -> Outcome:
    return judge(PART, Answer({"double": function}, NOWHERE))


def test_a_right_answer_passes_and_learns_why_it_matters() -> None:
    outcome = outcome_of(double)
    assert outcome.passed and "why it matters: Doubling is useful." in as_text(outcome)


def test_a_wrong_answer_is_told_the_smallest_example() -> None:
    outcome = outcome_of(lambda number: number * 2 if number < 7 else 0)
    assert (outcome.kind, outcome.check, outcome.expected, outcome.actual, outcome.detail) == (
        "wrong",
        "twice",
        "14",
        "0",
        "[ 7 ]",
    )
    text = as_text(outcome)
    assert text.startswith("[wrong] double: not twice as much") and "usual cause: It adds something." in text


def test_a_stub_is_not_attempted() -> None:
    def stub(number: int) -> int:
        raise NotImplementedError("double is not written yet")

    assert as_text(outcome_of(stub)) == "[not attempted] double: double is not written yet"


def test_a_name_that_is_missing_is_not_attempted() -> None:
    assert judge(PART, Answer({}, NOWHERE)).message == "double is not there"


def test_a_crash_shows_the_learners_own_lines_and_nothing_of_the_course() -> None:
    def crashing(number: int) -> int:
        return [][number]  # type: ignore[no-any-return]

    outcome = outcome_of(crashing)
    assert outcome.kind == "crashed" and "IndexError" in outcome.message
    assert "return [][number]" in outcome.detail and "judge.py" not in outcome.detail
    assert "hypothesis" not in outcome.detail


def test_a_fault_of_a_check_is_not_blamed_on_the_learner() -> None:
    def broken(answer: Answer) -> None:
        raise KeyError("a fault of the course")

    outcome = judge(Part(("double",), (Check("broken", broken, ""),), ""), Answer({"double": double}, NOWHERE))
    assert outcome.kind == "crashed" and "a fault of the course" in outcome.message


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timers")
def test_an_answer_that_never_ends_is_stopped_and_told_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(number: int) -> int:
        while True:
            number += 1

    monkeypatch.setattr(judging, "CHECK_LIMIT_S", 0.2)
    outcome = outcome_of(endless)
    assert outcome.kind == "crashed" and "a loop that never ends" in outcome.message
    assert "endless" in outcome.detail


def test_an_answer_that_changes_its_mind_is_told_so() -> None:
    calls = [0]

    def moody(number: int) -> int:
        calls[0] += 1
        return number * 2 if calls[0] != 3 else -1

    outcome = outcome_of(moody)
    assert outcome.kind == "wrong" and "different answers" in outcome.message


def test_only_the_first_failing_check_is_told() -> None:
    def fails(answer: Answer) -> None:
        raise Wrong("first")

    checks = (Check("one", fails, ""), Check("two", is_twice, ""))
    assert judge(Part(("double",), checks, ""), Answer({"double": lambda n: 0}, NOWHERE)).check == "one"


def test_all_outcomes_end_with_a_count() -> None:
    assert all_as_text([outcome_of(double), outcome_of(lambda n: 0)]).endswith("1 of 2 passed.")


@pytest.fixture
def keys() -> Lab:
    return find_lab("1")


def test_a_file_with_a_syntax_error_is_told_as_the_learners(keys: Lab, tmp_path: Path) -> None:
    path = tmp_path / "exercise.py"
    path.write_text("def page_key(:\n", encoding="utf-8")
    outcomes = check_file(keys, [path], NOWHERE)
    assert {outcome.kind for outcome in outcomes} == {"crashed"}
    assert "exercise.py cannot be loaded" in outcomes[0].message and "SyntaxError" in outcomes[0].detail
    assert str(tmp_path) not in outcomes[0].detail


def test_a_file_that_raises_when_it_is_loaded_shows_its_line(keys: Lab, tmp_path: Path) -> None:
    path = tmp_path / "exercise.py"
    path.write_text("x = 1\ny = x / 0\n", encoding="utf-8")
    detail = check_file(keys, [path], NOWHERE)[0].detail
    assert "line 2" in detail and "ZeroDivisionError" in detail


def test_objects_are_found_by_their_names() -> None:
    def clock(ask: object) -> list[object]:
        return []

    lab, part = find_part([clock])
    assert (lab.key, part.names) == ("08_arrange", ("clock",))
    with pytest.raises(LabError, match="no lab asks for double; the labs ask for these: 01_keys: "):
        find_part([double])


@pytest.mark.parametrize("asked", ["3", "03", "eviction", "03_eviction", "03_eviction/"])
def test_a_lab_is_found_by_number_name_and_folder(asked: str) -> None:
    assert find_lab(asked).key == "03_eviction"


def test_an_unknown_lab_is_answered_with_those_there_are() -> None:
    with pytest.raises(LabError, match="there is no lab '33': choose from 01_keys, 02_pages"):
        find_lab("33")
