from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from labs.kit.pool_drawing import pool_html
from labs.kit.pool_stepper import PoolStepper
from labs.kit.pool_view import IDLE, pool_view
from labs.kit.session import Session
from labs.kit.small_engine import small_llm
from minivllm.models.loading import load_model


@pytest.fixture
def stepper() -> Iterator[PoolStepper]:
    """Three steps of A are there, and two more to come."""
    stepper = PoolStepper(lambda: small_llm(load_model("tiny"), max_batched_tokens=8))
    stepper.arrive(range(10, 20), max_tokens=4)
    for _ in range(3):
        stepper.step()
    yield stepper
    stepper.close()


class Controls:
    def __init__(self, box: Any) -> None:
        (self.slider, self.step), self.picture, (self.prompt, self.add), self.news = (
            getattr(child, "children", child) for child in box.children
        )


@pytest.fixture
def controls(stepper: PoolStepper, session: Session) -> Controls:
    return Controls(pool_view(stepper, session, show_step=1))


def test_the_view_opens_at_a_step_and_prints_its_twin(
    stepper: PoolStepper, controls: Controls, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (controls.slider.description, controls.slider.value, controls.slider.max) == ("Step", 1, 3)
    assert controls.picture.value == pool_html(stepper.snapshots[1])


def test_the_twin_says_what_the_picture_shows(
    stepper: PoolStepper, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    pool_view(stepper, session, show_step=99)
    assert capsys.readouterr().out == stepper.last.as_text() + "\n"


def test_the_slider_shows_another_step_and_the_labbook_knows(
    stepper: PoolStepper, controls: Controls, session: Session
) -> None:
    controls.slider.value = 3
    assert controls.picture.value == pool_html(stepper.snapshots[3])
    (record,) = session.records
    assert (record["experiment"], record["topic"]) == ("pool-step", "looked at step 3")


def test_the_button_goes_on_by_one_step_and_behind_the_last_one_the_engine_computes(
    stepper: PoolStepper, controls: Controls
) -> None:
    controls.step.click()
    assert (controls.slider.value, stepper.last.step) == (2, 3)
    controls.step.click()
    controls.step.click()
    assert (controls.slider.value, controls.slider.max, stepper.last.step) == (4, 4, 4)


def test_an_idle_engine_says_so(stepper: PoolStepper, controls: Controls) -> None:
    stepper.run()
    controls.slider.max = controls.slider.value = stepper.last.step
    controls.step.click()
    assert IDLE in controls.news.value


def test_a_prompt_becomes_a_request(stepper: PoolStepper, controls: Controls, session: Session) -> None:
    stepper.run()
    controls.prompt.value = "two words"
    controls.add.click()
    assert "B has arrived" in controls.news.value and controls.prompt.value == ""
    assert session.records[-1]["experiment"] in ("pool-request", "pool-step")
    assert [record["prompt"] for record in session.records if record["experiment"] == "pool-request"] == ["two words"]
    controls.step.click()
    assert "B arrives." in stepper.last.said and controls.slider.value == stepper.last.step


def test_a_prompt_that_is_too_long_or_empty_is_refused_in_words(stepper: PoolStepper, controls: Controls) -> None:
    controls.add.click()
    assert "Write a prompt first" in controls.news.value
    controls.prompt.value = "a very long prompt <b> " * 40
    controls.add.click()
    assert "Refused:" in controls.news.value and "48" in controls.news.value and "<b>" not in controls.news.value


def test_the_picture_says_in_words_what_it_shows_in_colours(stepper: PoolStepper) -> None:
    stepper.run()
    stepper.arrive([*range(10, 18), 60, 61], max_tokens=4)
    html = pool_html(stepper.step())
    text = re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL))
    for page in stepper.last.pages:
        assert re.search(rf"page {page.view.page_id}\s+\S+ {page.view.state}\b", text)
    assert "held by" in text and "1 ref" in text and "evicted next, in order" in text and "changed" in text


def test_the_picture_needs_no_file_and_no_script_and_escapes_its_texts(stepper: PoolStepper) -> None:
    snapshot = stepper.last
    hostile = replace(snapshot.pages[0], tokens=("<script>", '"', "&", " "))
    html = pool_html(replace(snapshot, pages=(hostile, *snapshot.pages[1:])))
    assert "<script" not in html and "http" not in html and "url(" not in html
    assert "&lt;script&gt;" in html and "␣" in html


def test_what_the_box_says_of_itself_points_to_the_table(stepper: PoolStepper, session: Session) -> None:
    assert "the table above says the same" in repr(pool_view(stepper, session))
