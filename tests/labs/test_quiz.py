from __future__ import annotations

from typing import Any

import pytest

from labs.kit.questions.first_measurement import QUIZ
from labs.kit.quiz import Option, Question, Quiz, QuizError
from labs.kit.quiz_view import quiz_view
from labs.kit.session import Session

SMALL = Quiz(
    (
        Question("sum", "1 + 1?", (Option("2", True, "Count."), Option("3", False, "One too many."))),
        Question("sky", "The sky?", (Option("green", False, "Seldom."), Option("blue", True, "By day."))),
    )
)


def clickable(box: Any) -> tuple[Any, Any, Any]:
    (row, feedback) = box.children
    choice, button = row.children
    return choice, button, feedback


def test_the_text_twin_holds_every_question_and_option_and_no_explanation() -> None:
    text = SMALL.as_text()
    assert [line.strip() for line in text.splitlines() if line] == [
        "Question 1: 1 + 1?", "a) 2", "b) 3", "Question 2: The sky?", "a) green", "b) blue",
    ]  # fmt: skip


def test_an_answer_explains_every_option_and_goes_to_the_labbook(session: Session) -> None:
    said = SMALL.answer(1, "B ", session)
    assert "not quite" in said and "Count." in said and "One too many." in said
    (record,) = session.book.records(strict=True)
    assert (record["experiment"], record["question"], record["answer"]) == ("quiz", "sum", "3")
    assert record["is_right"] is False


def test_open_questions_keep_their_explanations_to_themselves(session: Session) -> None:
    said = SMALL.answer_all(["", "b"], session)
    assert "Question 1: open." in said and "Count." not in said and "Question 2, b: right." in said
    assert len(session.records) == 1


@pytest.mark.parametrize("letter", ["c", "ab", "1", ""])
def test_a_letter_that_is_no_option_is_refused_and_not_recorded(session: Session, letter: str) -> None:
    with pytest.raises(QuizError, match="give one of a, b"):
        SMALL.answer(1, letter, session)
    assert session.records == []


def test_too_few_answers_are_refused(session: Session) -> None:
    with pytest.raises(QuizError, match="1 answers for 2 questions"):
        SMALL.answer_all(["a"], session)


def test_a_question_needs_one_right_option_and_explains_all() -> None:
    with pytest.raises(QuizError, match="exactly one right option"):
        Question("q", "?", (Option("a", True, "x"), Option("b", True, "y")))
    with pytest.raises(QuizError, match="without an explanation"):
        Question("q", "?", (Option("a", True, "x"), Option("b", False, "")))


def test_the_buttons_do_what_the_model_does(session: Session) -> None:
    choice, button, feedback = clickable(quiz_view(SMALL, session).children[0])
    assert choice.options == ("a", "b")
    choice.value = "a"
    button.click()
    assert "right" in feedback.value and "Count." in feedback.value
    assert session.records[0]["is_right"] is True


def test_an_answer_that_is_checked_again_is_recorded_once_and_another_one_too(session: Session) -> None:
    choice, button, _ = clickable(quiz_view(SMALL, session).children[0])
    for letter in ("b", "b", "a"):
        choice.value = letter
        button.click()
    assert [record["answer"] for record in session.records] == ["3", "2"]


def test_the_box_says_how_many_questions_are_answered_and_which_button_is_whose(session: Session) -> None:
    *questions, state = quiz_view(SMALL, session).children
    choice, button, _ = clickable(questions[1])
    assert button.description == "Check question 2" and choice.tooltips == ("a) green", "b) blue")
    choice.value = "b"
    button.click()
    assert "1 of 2 questions answered" in state.value and button.icon == "check"


def test_a_click_without_a_choice_records_nothing(session: Session) -> None:
    _, button, feedback = clickable(quiz_view(SMALL, session).children[1])
    button.click()
    assert "Choose a letter first" in feedback.value and session.records == []


def test_what_the_quiz_box_says_of_itself_points_to_the_text(session: Session) -> None:
    assert repr(quiz_view(SMALL, session)) == "(buttons for 2 questions; the text above says the same)"


def test_the_right_answers_of_the_first_notebook_stand_in_different_places() -> None:
    places = [[option.is_right for option in question.options].index(True) for question in QUIZ.questions]
    assert 3 <= len(places) <= 6 and len(set(places)) > 1
    assert len({question.key for question in QUIZ.questions}) == len(places)
