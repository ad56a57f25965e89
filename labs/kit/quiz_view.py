"""The quiz as a row of letters and a button for each question. All it knows comes from the model in `quiz`."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets as widgets

from labs.kit.quiz import Quiz
from labs.kit.session import Session


class QuizBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __init__(self, questions: list[widgets.VBox], state: widgets.HTML) -> None:
        super().__init__([*questions, state])
        self._num_questions = len(questions)

    def __repr__(self) -> str:
        return f"(buttons for {self._num_questions} questions; the text above says the same)"


def quiz_view(quiz: Quiz, session: Session) -> QuizBox:
    """A box for a notebook. Tab, arrow keys and Enter are enough to use it; answers go to the labbook.

    After Check the focus stays where it is, on the button, and the explanation is read aloud.
    """
    state = widgets.HTML()
    answered: dict[int, str] = {}

    def on_answer(number: int, letter: str) -> None:
        answered[number] = letter
        state.value = _spoken(f"{len(answered)} of {len(quiz.questions)} questions answered.", "status")

    numbers = range(1, len(quiz.questions) + 1)
    return QuizBox([_question_view(quiz, number, session, on_answer) for number in numbers], state)


def _question_view(quiz: Quiz, number: int, session: Session, on_answer: Callable[[int, str], None]) -> widgets.VBox:
    letters = quiz.questions[number - 1].letters
    choice = widgets.ToggleButtons(
        options=list(letters),
        value=None,
        description=f"Question {number}",
        tooltips=_texts(quiz, number),
        style={"button_width": "4em"},
    )
    check = widgets.Button(
        description=f"Check question {number}",
        tooltip=f"Check the answer to question {number}, and explain all options",
    )
    feedback = widgets.HTML()
    recorded: list[str] = []

    def on_click(_: widgets.Button) -> None:
        letter = choice.value
        if letter is None:
            feedback.value = _spoken("Choose a letter first.")
            return
        is_repeated = recorded[-1:] == [letter]  # an answer that is checked twice is still one answer
        said = quiz.feedback(number, letter) if is_repeated else quiz.answer(number, letter, session)
        recorded.append(letter)
        feedback.value = _spoken(said)
        check.icon = "check" if quiz.questions[number - 1].option(letter).is_right else ""
        on_answer(number, letter)

    check.on_click(on_click)
    return widgets.VBox([widgets.HBox([choice, check]), feedback])


def _texts(quiz: Quiz, number: int) -> list[str]:
    question = quiz.questions[number - 1]
    return [f"{letter}) {option.text}" for letter, option in zip(question.letters, question.options, strict=True)]


def _spoken(text: str, role: str = "alert") -> str:
    """Text that screen readers say when it appears. An alert is said although its element is new, too."""
    return f'<pre role="{role}" style="white-space: pre-wrap">{html.escape(text)}</pre>'
