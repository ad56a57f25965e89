"""Notebook 00 as a learner uses it in JupyterLab: run it, answer a question, change a prediction; by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from labs.kit.questions.first_measurement import QUIZ
from tests.browser.conftest import OpenPage
from tests.browser.lab import Lab
from tests.browser.open_notebook import ANSWER_TIMEOUT_MS, OpenNotebook


@pytest.fixture(scope="module")
def notebook(opened: OpenPage, lab: Lab) -> Iterator[OpenNotebook]:
    notebook = OpenNotebook(opened(), lab, "00_first_measurement")
    notebook.run_all()
    yield notebook
    lab.stop_kernels()


def test_run_all_ends_without_an_error_and_with_its_records(notebook: OpenNotebook) -> None:
    assert notebook.errors() == []
    assert len(notebook.records("cold_warm")) == len(notebook.records("outcome")) == 2


def test_nothing_is_asked_of_another_host(notebook: OpenNotebook) -> None:
    assert notebook.watched.requests_elsewhere == []


def test_a_question_is_answered_by_keyboard_alone(notebook: OpenNotebook) -> None:
    quiz = notebook.cell("quiz")
    question = QUIZ.questions[0]
    for is_right in (False, True):
        letter = next(
            name for name, option in zip(question.letters, question.options, strict=True) if option.is_right is is_right
        )
        letters = quiz.locator(".widget-toggle-buttons").filter(has_text="Question 1")
        notebook.tab_to(letters.get_by_role("button", name=letter, exact=True), quiz)
        notebook.press("Space")
        notebook.tab_to(quiz.get_by_role("button", name="Check").first, quiz)
        notebook.press("Enter")
        verdict = "right" if is_right else "not quite"
        expect(quiz).to_contain_text(f"Question 1, {letter}: {verdict}.", timeout=ANSWER_TIMEOUT_MS)
    answers = [(one["question"], one["is_right"]) for one in notebook.records("quiz")]
    assert answers == [(question.key, False), (question.key, True)]


def test_check_without_a_letter_says_so_and_records_nothing(notebook: OpenNotebook) -> None:
    quiz = notebook.cell("quiz")
    num_answers = len(notebook.records("quiz"))
    notebook.tab_to(quiz.get_by_role("button", name="Check").nth(1), quiz)
    notebook.press("Enter")
    expect(quiz).to_contain_text("Choose a letter first.", timeout=ANSWER_TIMEOUT_MS)
    assert len(notebook.records("quiz")) == num_answers


def test_a_prediction_cannot_be_changed_after_its_measurement(notebook: OpenNotebook) -> None:
    form = notebook.cell("predict-warm")
    num_predictions = len(notebook.records("prediction"))
    choose(notebook, form, "same")
    write_down(notebook, form)
    expect(form.get_by_role("status")).to_contain_text("Not recorded", timeout=ANSWER_TIMEOUT_MS)
    assert len(notebook.records("prediction")) == num_predictions


def test_a_prediction_is_changed_by_keyboard_before_its_measurement(notebook: OpenNotebook) -> None:
    form = notebook.cell("predict-warm")
    run_again(notebook, form)
    num_predictions = len(notebook.records("prediction"))

    choose(notebook, form, "same")
    number = form.get_by_role("spinbutton", name="Size (number)")
    expect(number).to_have_value("1", timeout=ANSWER_TIMEOUT_MS)
    notebook.tab_to(form.get_by_role("slider"), form)
    notebook.press("PageDown")
    expect(number).to_have_value("0.794", timeout=ANSWER_TIMEOUT_MS)
    expect(form.get_by_role("status")).to_contain_text("Not written down yet: smaller", timeout=ANSWER_TIMEOUT_MS)
    write_down(notebook, form)
    expect(form.get_by_role("status")).to_contain_text("Written down: ", timeout=ANSWER_TIMEOUT_MS)

    (changed,) = notebook.records("prediction")[num_predictions:]
    assert (changed["direction"], changed["ratio"], changed["is_default"]) == ("smaller", 0.794, False)


def choose(notebook: OpenNotebook, form: Locator, direction: str) -> None:
    notebook.tab_to(form.get_by_role("button", name=direction, exact=True), form)
    notebook.press("Space")
    expect(form.get_by_role("status")).to_contain_text("Not written down yet", timeout=ANSWER_TIMEOUT_MS)


def write_down(notebook: OpenNotebook, form: Locator) -> None:
    notebook.tab_to(form.get_by_role("button", name="Write it down"), form)
    notebook.press("Enter")


def run_again(notebook: OpenNotebook, cell: Locator) -> None:
    before = cell.locator(".jp-InputPrompt").inner_text()
    cell.focus()
    notebook.press("Shift+Enter")
    expect(cell.locator(".jp-InputPrompt")).not_to_have_text(before, timeout=ANSWER_TIMEOUT_MS)
    notebook.wait_for_kernel()
