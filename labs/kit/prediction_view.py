"""A prediction as a widget. All it knows comes from the form in `prediction_form`."""

from __future__ import annotations

import html
import math
from typing import Any

import ipywidgets as widgets

from labs.kit.guess import Guess
from labs.kit.prediction_form import LARGEST_RATIO, LEAST_RATIO, PredictionForm
from labs.kit.predictions import DIRECTIONS
from labs.kit.session import Session

_WIDE = {"description_width": "9em"}


class PredictionBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __repr__(self) -> str:
        return "(a form to change this prediction; the text above says what it is)"


def prediction_view(guess: Guess, session: Session) -> PredictionBox:
    """Print the prediction as text, and return it as a box for the last line of a cell.

    Tab, arrow keys, Enter and Space are enough to use it.
    """
    print(guess.prediction)
    return PredictionBox(_controls(PredictionForm(guess, session)))


def _controls(form: PredictionForm) -> list[widgets.Widget]:
    direction = widgets.ToggleButtons(
        options=list(DIRECTIONS),
        value=form.direction,
        description="It will be",
        tooltips=[f"{word} than the baseline" if word != "same" else "the same as the baseline" for word in DIRECTIONS],
        style=_WIDE,
    )
    slider = widgets.FloatLogSlider(
        value=form.ratio,
        min=math.log10(LEAST_RATIO),
        max=math.log10(LARGEST_RATIO),
        step=0.02,
        description="Size (slider)",
        tooltip="expected size as a multiple of the baseline, on a logarithmic scale",
        readout=False,
        continuous_update=False,
        style=_WIDE,
        layout={"width": "32em"},
    )
    number = widgets.BoundedFloatText(
        value=form.ratio,
        min=LEAST_RATIO,
        max=LARGEST_RATIO,
        step=0.05,
        description="Size (number)",
        tooltip="expected size as a multiple of the baseline: 0.25 is a quarter of it",
        style=_WIDE,
        layout={"width": "16em"},
    )
    button = widgets.Button(
        description="Write it down", tooltip="record this prediction in the labbook", icon="pencil", button_style="info"
    )
    status = widgets.HTML()
    _connect(form, direction, slider, number, button, status)
    question = widgets.HTML(f"<strong>{html.escape(form.question)}</strong>")
    return [question, direction, slider, number, button, status]


def _connect(
    form: PredictionForm,
    direction: widgets.ToggleButtons,
    slider: widgets.FloatLogSlider,
    number: widgets.BoundedFloatText,
    button: widgets.Button,
    status: widgets.HTML,
) -> None:
    is_showing = False  # what the form changes in one control is no answer given in that control

    def show() -> None:
        nonlocal is_showing
        is_showing = True
        direction.value, slider.value, number.value = form.direction, form.ratio, form.ratio
        is_showing = False
        status.value = f'<span role="status" aria-live="polite">{html.escape(form.status)}</span>'

    def on_direction(change: dict[str, Any]) -> None:
        if not is_showing:
            form.choose_direction(change["new"])
            show()

    def on_ratio(change: dict[str, Any]) -> None:
        if not is_showing:
            form.choose_ratio(change["new"])
            show()

    def on_click(_: widgets.Button) -> None:
        form.write_down()
        show()

    direction.observe(on_direction, names="value")
    slider.observe(on_ratio, names="value")
    number.observe(on_ratio, names="value")
    button.on_click(on_click)
    show()
