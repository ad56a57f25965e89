"""The form, and the widget around it, driven without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from labs.kit.parameters import checkout
from labs.kit.placeholders import as_text, placeholders, placeholders_in
from labs.kit.prediction_form import PredictionForm
from labs.kit.prediction_view import prediction_view
from labs.kit.session import Session


def form_of(session: Session, smallest_effect: float = 0.15) -> PredictionForm:
    return PredictionForm(session.predict("warm", "same", 1.0, smallest_effect), session)


def controls(box: Any) -> dict[str, Any]:
    names = ("question", "direction", "slider", "number", "button", "status")
    return dict(zip(names, box.children, strict=True))


def test_direction_and_size_follow_each_other(session: Session) -> None:
    form = form_of(session)
    form.choose_ratio(1.1)
    assert form.direction == "same"
    form.choose_ratio(3.0)
    assert form.direction == "larger"
    form.choose_direction("smaller")
    assert form.ratio == 0.5
    form.choose_ratio(0.2)
    form.choose_direction("smaller")
    assert form.ratio == 0.2


@pytest.mark.parametrize("smallest_effect", [0.01, 0.15, 0.6, 0.99])
def test_a_chosen_direction_can_always_be_written_down(session: Session, smallest_effect: float) -> None:
    form = form_of(session, smallest_effect)
    for direction in ("larger", "same", "smaller"):
        form.choose_direction(direction)  # type: ignore[arg-type]
        assert form.write_down().startswith(f"Written down: warm: {direction}, about ")


def test_the_status_says_what_is_written_down_what_is_not_and_why(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    form = PredictionForm(guess, session)
    form.choose_ratio(0.2)
    assert form.status == "Not written down yet: smaller, about 0.2 of the baseline."
    assert form.write_down() == "Written down: warm: smaller, about 0.2 of the baseline (yours)."
    with session.measuring(guess):
        pass
    form.choose_ratio(0.1)
    assert form.write_down().startswith("Not recorded: 'warm' stays as it is, because its measurement has begun")
    assert guess.prediction.ratio == 0.2


def test_the_box_prints_the_prediction_and_stays_the_same_in_words(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    box = prediction_view(session.predict("warm", "smaller", 0.5), session)
    assert capsys.readouterr().out == "warm: smaller, about 0.5 of the baseline\n"
    assert repr(box) == "(a form to change this prediction; the text above says what it is)"


def test_every_control_has_a_name_and_the_size_can_be_typed_or_slid(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    shown = controls(prediction_view(guess, session))
    assert all(shown[name].description for name in ("direction", "slider", "number", "button"))
    shown["number"].value = 4.0
    assert (shown["direction"].value, shown["slider"].value) == ("larger", 4.0)
    shown["slider"].value = 0.25
    assert (shown["direction"].value, shown["number"].value) == ("smaller", 0.25)
    shown["direction"].value = "same"
    assert (shown["slider"].value, shown["number"].value) == (1.0, 1.0)
    assert len(session.records) == 1 and "Not written down yet" in shown["status"].value
    shown["button"].click()
    assert (guess.prediction.direction, guess.is_default) == ("same", False)
    assert "Written down" in shown["status"].value and len(session.records) == 2


def test_what_the_form_shows_is_text_and_no_markup(session: Session) -> None:
    shown = controls(prediction_view(session.predict("<b>warm</b>", "smaller", 0.5), session))
    assert "&lt;b&gt;" in shown["question"].value and "<b>" not in shown["status"].value


def test_the_placeholders_are_those_of_the_notebooks() -> None:
    """Made anew by `python -m labs.kit.placeholders`."""
    found = placeholders_in(checkout() / "notebooks")
    assert found == placeholders(), "run: python -m labs.kit.placeholders"
    assert "a warm request, cache on" in as_text(found)
