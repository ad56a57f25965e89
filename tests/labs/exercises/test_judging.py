"""Judging an answer ends, whatever the answer does, and tells the learner which of four things happened."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from labs.kit.exercises import judge as judging
from labs.kit.exercises.answering import check_file, find_part
from labs.kit.exercises.feedback import all_as_text, as_text
from labs.kit.exercises.judge import judge
from labs.kit.exercises.lab import Lab, LabError, find_lab
from labs.kit.exercises.loading import load_files
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


RIGHT = "return number * 2"


@pytest.fixture
def answer_of(tmp_path: Path) -> Callable[[str], Answer]:
    """An answer whose `double` has this body, in a file of its own as a learner's is."""

    def write(body: str) -> Answer:
        path = tmp_path / "exercise.py"
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        path.write_text(f"calls = []\n\n\ndef double(number):\n{lines}\n", encoding="utf-8")
        return Answer(vars(load_files([path], "learner")), NOWHERE)

    return write


def test_a_right_answer_passes_and_learns_why_it_matters(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of(RIGHT))
    assert outcome.passed and "why it matters: Doubling is useful." in as_text(outcome)


def test_a_wrong_answer_is_told_the_smallest_example(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of("return number * 2 if number < 7 else 0"))
    assert (outcome.kind, outcome.check) == ("wrong", "twice")
    assert (outcome.expected, outcome.actual, outcome.detail) == ("14", "0", "[ 7 ]")
    text = as_text(outcome)
    assert text.startswith("[wrong] double: not twice as much") and "usual cause: It adds something." in text


def test_a_stub_is_not_attempted(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of('raise NotImplementedError("double is not written yet")'))
    assert as_text(outcome) == "[not attempted] double: double is not written yet"


def test_a_name_that_is_missing_is_not_attempted() -> None:
    assert judge(PART, Answer({}, NOWHERE)).message == "double is not there"


def test_a_crash_shows_the_learners_own_lines_and_nothing_of_the_course(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of("return [][number]"))
    assert outcome.kind == "crashed" and "IndexError" in outcome.message
    assert "return [][number]" in outcome.detail and "exercise.py" in outcome.detail
    assert "test_judging.py" not in outcome.detail and "hypothesis" not in outcome.detail


def test_a_fault_of_a_check_is_not_blamed_on_the_learner(answer_of: Callable[[str], Answer]) -> None:
    def broken(answer: Answer) -> None:
        raise KeyError("a lost page")

    outcome = judge(Part(("double",), (Check("broken", broken, ""),), ""), answer_of(RIGHT))
    assert outcome.kind == "crashed"
    assert "the check itself failed, which is a fault of the course: KeyError: 'a lost page'" in outcome.message


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timers")
def test_an_answer_that_never_ends_is_stopped_and_told_where(
    answer_of: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "CHECK_LIMIT_S", 0.2)
    outcome = judge(PART, answer_of("while True:\n    number += 1"))
    assert outcome.kind == "crashed" and "a loop that never ends" in outcome.message
    assert "in double" in outcome.detail


def test_an_answer_that_changes_its_mind_is_told_so(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of("calls.append(number)\nreturn number * 2 if len(calls) != 3 else -1"))
    assert outcome.kind == "wrong" and "different answers" in outcome.message


def test_code_that_leaves_python_is_told_and_does_not_end_the_check(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of("raise SystemExit(0)"))
    assert outcome.kind == "crashed" and "your code called exit()" in outcome.message


def test_none_is_an_answer_that_is_shown(answer_of: Callable[[str], Answer]) -> None:
    outcome = judge(PART, answer_of("return None"))
    assert (outcome.expected, outcome.actual) == ("0", "None") and "what came: None" in as_text(outcome)


def test_what_the_code_prints_is_kept_apart_and_short(
    answer_of: Callable[[str], Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = judge(PART, answer_of('print("pop", number)\nreturn 1'))
    assert capsys.readouterr().out == ""
    assert 1 <= len(outcome.printed.splitlines()) <= 6 and "your code printed: " in as_text(outcome)


def test_as_the_value_of_a_cell_an_outcome_shows_nothing_more(answer_of: Callable[[str], Answer]) -> None:
    assert judge(PART, answer_of(RIGHT))._ipython_display_() is None  # type: ignore[func-returns-value]


def test_only_the_first_failing_check_is_told(answer_of: Callable[[str], Answer]) -> None:
    def fails(answer: Answer) -> None:
        raise Wrong("first")

    checks = (Check("one", fails, ""), Check("two", is_twice, ""))
    assert judge(Part(("double",), checks, ""), answer_of("return 0")).check == "one"


def test_all_outcomes_end_with_a_count(answer_of: Callable[[str], Answer]) -> None:
    outcomes = [judge(PART, answer_of(RIGHT)), judge(PART, answer_of("return 0"))]
    assert all_as_text(outcomes).endswith("1 of 2 passed.")


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


@pytest.mark.parametrize("text", ["raise SystemExit(0)", "exit()"])
def test_a_file_that_leaves_python_is_told(keys: Lab, tmp_path: Path, text: str) -> None:
    path = tmp_path / "exercise.py"
    path.write_text(f"import sys\nfrom sys import exit\n{text}\n", encoding="utf-8")
    assert {outcome.kind for outcome in check_file(keys, [path], NOWHERE)} == {"crashed"}


def test_a_file_that_never_ends_is_stopped(keys: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labs.kit.exercises.answering.CHECK_LIMIT_S", 0.2)
    path = tmp_path / "exercise.py"
    path.write_text("while True:\n    pass\n", encoding="utf-8")
    outcomes = check_file(keys, [path], NOWHERE)
    assert "a loop that never ends" in outcomes[0].detail
    assert all_as_text(outcomes).count("cannot be loaded") == 1


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


def test_objects_that_belong_together_and_names_that_are_nearly_right_are_told() -> None:
    def root_key() -> bytes:
        return b""

    def clok(ask: object) -> list[object]:
        return []

    with pytest.raises(LabError, match=r"lab 01_keys checks these together: check\(root_key, page_key\)"):
        find_part([root_key])
    with pytest.raises(LabError, match="no lab asks for clok; is it clock"):
        find_part([clok])


@pytest.mark.parametrize("asked", ["3", "03", "eviction", "03_eviction", "03_eviction/"])
def test_a_lab_is_found_by_number_name_and_folder(asked: str) -> None:
    assert find_lab(asked).key == "03_eviction"


def test_an_unknown_lab_is_answered_with_those_there_are() -> None:
    with pytest.raises(LabError, match="there is no lab '33': choose from 01_keys, 02_pages"):
        find_lab("33")
