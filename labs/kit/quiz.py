"""A quiz without a screen: questions, options, and an explanation for each option, the wrong ones included."""

from __future__ import annotations

import string
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from labs.kit.session import Session

_WIDTH = 96


class QuizError(ValueError):
    """An answer or a question that makes no sense; the message says what would."""


@dataclass(frozen=True)
class Option:
    text: str
    is_right: bool
    explanation: str


@dataclass(frozen=True)
class Question:
    """`key` names the question in the labbook, for as long as its meaning stays the same."""

    key: str
    text: str
    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        if sum(option.is_right for option in self.options) != 1:
            raise QuizError(f"the question {self.key!r} needs exactly one right option")
        if not all(option.explanation for option in self.options):
            raise QuizError(f"the question {self.key!r} has an option without an explanation")

    @property
    def letters(self) -> str:
        return string.ascii_lowercase[: len(self.options)]

    def option(self, letter: str) -> Option:
        place = self.letters.find(letter.strip().lower()) if letter.strip() else -1
        if place < 0 or len(letter.strip()) != 1:
            raise QuizError(f"the answer to {self.key!r} is {letter!r}: give one of {', '.join(self.letters)}")
        return self.options[place]


@dataclass(frozen=True)
class Quiz:
    questions: tuple[Question, ...]

    def as_text(self) -> str:
        """All questions with their options: the twin of the widget, for paper, screen readers and terminals."""
        return "\n\n".join(self.question_text(number) for number in range(1, len(self.questions) + 1))

    def question_text(self, number: int) -> str:
        question = self.questions[number - 1]
        options = zip(question.letters, question.options, strict=True)
        lines = [_wrapped(f"Question {number}: ", question.text)]
        return "\n".join(lines + [_wrapped(f"  {letter}) ", option.text) for letter, option in options])

    def answer(self, number: int, letter: str, session: Session) -> str:
        """Record an answer, and explain every option of its question. Raises QuizError."""
        question = self.questions[number - 1]
        chosen = question.option(letter)
        session.note("quiz", {"question": question.key, "answer": chosen.text, "is_right": chosen.is_right})
        return self.feedback(number, letter)

    def feedback(self, number: int, letter: str) -> str:
        """Whether an answer is right, and why each option is or is not; records nothing."""
        question = self.questions[number - 1]
        chosen = question.option(letter)
        lines = [f"Question {number}, {letter.strip().lower()}: {'right' if chosen.is_right else 'not quite'}."]
        for name, option in zip(question.letters, question.options, strict=True):
            verdict = "Right. " if option.is_right else "No. "
            lines.append(_wrapped(f"  {name}) ", verdict + option.explanation))
        return "\n".join(lines)

    def answer_all(self, letters: Sequence[str], session: Session) -> str:
        """Answers in order; an empty string leaves a question open, and its explanations unseen."""
        if len(letters) != len(self.questions):
            raise QuizError(f"{len(letters)} answers for {len(self.questions)} questions: leave '' for an open one")
        return "\n\n".join(
            self.answer(number, letter, session) if letter.strip() else f"Question {number}: open."
            for number, letter in enumerate(letters, start=1)
        )


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
