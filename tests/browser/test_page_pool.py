"""Notebook 03 in JupyterLab: the page pool is looked at step by step, and moved on, by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenPage
from tests.browser.lab import Lab
from tests.browser.open_notebook import ANSWER_TIMEOUT_MS, OpenNotebook


@pytest.fixture(scope="module")
def notebook(opened: OpenPage, lab: Lab) -> Iterator[OpenNotebook]:
    notebook = OpenNotebook(opened(), lab, "03_pages_and_attention")
    notebook.run_all()
    yield notebook
    lab.stop_kernels()


@pytest.fixture
def pool(notebook: OpenNotebook) -> Locator:
    """The first cell that shows a pool with its controls."""
    return notebook.cell_with(notebook.page.get_by_role("button", name="Step engine")).first


def picture(pool: Locator) -> Locator:
    return pool.get_by_role("group", name=re.compile("Page pool after step"))


def test_run_all_ends_without_an_error(notebook: OpenNotebook) -> None:
    assert notebook.errors() == []
    assert notebook.watched.requests_elsewhere == []


def test_the_slider_shows_the_pool_after_another_step(notebook: OpenNotebook, pool: Locator) -> None:
    num_looks = len(notebook.records("pool-step"))
    notebook.tab_to(pool.get_by_role("slider"), pool)
    notebook.press("Home")
    expect(picture(pool)).to_contain_text("Step 0. The pool is empty.", timeout=ANSWER_TIMEOUT_MS)
    notebook.press("ArrowRight")
    expect(picture(pool)).to_contain_text("Step 1.", timeout=ANSWER_TIMEOUT_MS)
    assert [look["topic"] for look in notebook.records("pool-step")[num_looks:]][-1] == "looked at step 1"


def test_a_prompt_of_the_learner_moves_the_engine(notebook: OpenNotebook, pool: Locator) -> None:
    notebook.tab_to(pool.get_by_role("slider"), pool)
    notebook.press("End")
    last = int(float(pool.get_by_role("slider").get_attribute("aria-valuenow") or ""))
    expect(picture(pool)).to_contain_text(f"Step {last}.", timeout=ANSWER_TIMEOUT_MS)

    notebook.tab_to(pool.get_by_role("textbox", name="Prompt"), pool)
    notebook.page.keyboard.type("a page holds")
    notebook.tab_to(pool.get_by_role("button", name="Add request"), pool)
    notebook.press("Enter")
    expect(pool).to_contain_text("has arrived", timeout=ANSWER_TIMEOUT_MS)
    assert notebook.records("pool-request")[-1]["prompt"] == "a page holds"

    notebook.tab_to(pool.get_by_role("button", name="Step engine"), pool)
    notebook.press("Enter")
    expect(picture(pool)).to_contain_text(f"Step {last + 1}.", timeout=ANSWER_TIMEOUT_MS)
    expect(picture(pool)).to_contain_text("arrives", timeout=ANSWER_TIMEOUT_MS)
