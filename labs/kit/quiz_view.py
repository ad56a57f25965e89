"""The quiz as a row of letters and a button for each question. All it knows comes from the model in `quiz`."""

from __future__ import annotations

import ipywidgets as widgets

from labs.kit.quiz import Quiz
from labs.kit.session import Session


class QuizBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __repr__(self) -> str:
        return f"(buttons for {len(self.children)} questions; the text above says the same)"


def quiz_view(quiz: Quiz, session: Session) -> QuizBox:
    """A box for a notebook. Tab, arrow keys and Enter are enough to use it; answers go to the labbook."""
    numbers = range(1, len(quiz.questions) + 1)
    return QuizBox([_question_view(quiz, number, session) for number in numbers])


def _question_view(quiz: Quiz, number: int, session: Session) -> widgets.VBox:
    letters = quiz.questions[number - 1].letters
    choice = widgets.ToggleButtons(
        options=list(letters), value=None, description=f"Question {number}", tooltips=_texts(quiz, number)
    )
    check = widgets.Button(description="Check", tooltip=f"Check the answer to question {number}")
    feedback = widgets.HTML()

    def on_click(_: widgets.Button) -> None:
        if choice.value is None:
            feedback.value = _preformatted("Choose a letter first.")
        else:
            feedback.value = _preformatted(quiz.answer(number, choice.value, session))

    check.on_click(on_click)
    return widgets.VBox([widgets.HBox([choice, check]), feedback])


def _texts(quiz: Quiz, number: int) -> list[str]:
    return [option.text for option in quiz.questions[number - 1].options]


def _preformatted(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<pre aria-live="polite" style="white-space: pre-wrap">{escaped}</pre>'
