"""Notebook 05 in JupyterLab: two prompts side by side, chosen, repaired and written by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenPage
from tests.browser.lab import Lab
from tests.browser.open_notebook import ANSWER_TIMEOUT_MS, OpenNotebook

OWN_TEXTS = "two texts of your own"
TOKENS = "Tokens of both prompts, page by page"


@pytest.fixture(scope="module")
def notebook(opened: OpenPage, lab: Lab) -> Iterator[OpenNotebook]:
    notebook = OpenNotebook(opened(), lab, "05_prompt_arrangement")
    notebook.run_all()
    yield notebook
    lab.stop_kernels()


@pytest.fixture
def pair(notebook: OpenNotebook) -> Locator:
    """The first cell that shows two prompts with their controls."""
    return notebook.cell_with(notebook.page.get_by_role("combobox", name="Prompt")).first


def looks(notebook: OpenNotebook) -> list[str]:
    return [record["label"] for record in notebook.records("prompt-pair")]


def verdict(pair: Locator) -> Locator:
    return pair.get_by_role("status").first


def test_run_all_ends_without_an_error(notebook: OpenNotebook) -> None:
    assert notebook.errors() == []
    assert notebook.watched.requests_elsewhere == []


def test_another_prompt_and_its_repair_are_chosen_by_keyboard(notebook: OpenNotebook, pair: Locator) -> None:
    prompt = pair.get_by_role("combobox", name="Prompt")
    before = verdict(pair).text_content() or ""
    notebook.tab_to(prompt, pair)
    notebook.press("Space", "ArrowDown", "Enter")  # a closed list leaves the arrow keys to JupyterLab
    expect(verdict(pair)).not_to_have_text(before, timeout=ANSWER_TIMEOUT_MS)
    chosen = prompt.evaluate("one => one.selectedOptions[0].textContent.replaceAll('\\u00a0', ' ')")
    expect(pair.get_by_role("region", name=TOKENS)).to_contain_text("computed")
    assert looks(notebook)[-1].startswith(f"{chosen}, ")

    broken = verdict(pair).text_content() or ""
    notebook.tab_to(pair.get_by_role("button", name="after", exact=True), pair)
    notebook.press("Space")
    expect(verdict(pair)).not_to_have_text(broken, timeout=ANSWER_TIMEOUT_MS)
    assert looks(notebook)[-1] == f"{chosen}, after"


def test_two_texts_of_the_learner_are_compared(notebook: OpenNotebook, pair: Locator) -> None:
    notebook.tab_to(pair.get_by_role("combobox", name="Prompt"), pair)
    notebook.press("End")
    second = pair.get_by_role("textbox", name="Second text")
    expect(second).to_be_visible(timeout=ANSWER_TIMEOUT_MS)
    before = verdict(pair).text_content() or ""
    notebook.tab_to(second, pair)
    notebook.press("Control+Home")
    notebook.page.keyboard.type("Zebra crossing. ")
    notebook.press("Tab")
    expect(verdict(pair)).not_to_have_text(before, timeout=ANSWER_TIMEOUT_MS)
    last = notebook.records("prompt-pair")[-1]
    assert last["label"] == OWN_TEXTS and last["shared_tokens"] <= 1  # the token that every prompt begins with
