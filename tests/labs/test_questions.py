"""What holds for the quiz of every notebook."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from labs.kit import questions
from labs.kit.quiz import Quiz

NAMES = [module.name for module in pkgutil.iter_modules(questions.__path__)]


@pytest.mark.parametrize("name", NAMES)
def test_a_quiz_has_a_few_questions_and_its_right_answers_in_different_places(name: str) -> None:
    quiz: Quiz = import_module(f"labs.kit.questions.{name}").QUIZ
    places = [[option.is_right for option in question.options].index(True) for question in quiz.questions]
    assert 3 <= len(places) <= 6 and len(set(places)) > 1


def test_no_key_of_a_question_is_used_twice() -> None:
    keys = [q.key for name in NAMES for q in import_module(f"labs.kit.questions.{name}").QUIZ.questions]
    assert len(set(keys)) == len(keys)
