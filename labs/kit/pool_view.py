"""The page pool as a slider over its steps, and buttons that move the engine. All it knows comes from the stepper."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from labs.kit.pool_drawing import pool_html
from labs.kit.pool_stepper import PoolStepper, Snapshot
from labs.kit.session import Session
from minivllm.request import RequestError

ANSWER_TOKENS = 4
IDLE = "Nothing is left to do: add a request, or move the slider back."


class PoolBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __repr__(self) -> str:
        return "(a slider and buttons over the page pool; the table above says the same)"


def pool_view(stepper: PoolStepper, session: Session, show_step: int | None = None) -> PoolBox:
    """A box for the last line of a cell, opened at a step; its text twin is printed above it.

    Tab, arrow keys and Enter are enough to use it. What the learner looks at, adds and steps goes to the labbook.
    """
    print(_chosen(stepper, show_step).as_text())
    return _PoolView(stepper, session, _chosen(stepper, show_step).step).box


def _chosen(stepper: PoolStepper, step: int | None) -> Snapshot:
    return stepper.last if step is None else stepper.snapshots[min(step, stepper.last.step)]


class _PoolView:
    def __init__(self, stepper: PoolStepper, session: Session, step: int) -> None:
        self._stepper, self._session = stepper, session
        self._slider = widgets.IntSlider(
            value=step,
            min=0,
            max=stepper.last.step,
            description="Step",
            continuous_update=False,
            layout=widgets.Layout(width="26rem"),
        )
        self._picture = widgets.HTML(pool_html(stepper.snapshots[step]))
        self._prompt = widgets.Text(
            description="Prompt", placeholder="a few words of your own", layout=widgets.Layout(width="26rem")
        )
        self._news = widgets.HTML()
        step_engine = widgets.Button(
            description="Step engine", tooltip="Let the engine compute one step, and show the pool after it"
        )
        add_request = widgets.Button(
            description="Add request", tooltip=f"Send the prompt to the engine, for {ANSWER_TOKENS} answer tokens"
        )
        self._slider.observe(self._on_slide, names="value")
        step_engine.on_click(self._on_step)
        add_request.on_click(self._on_add)
        self.box = PoolBox(
            [
                widgets.HBox([self._slider, step_engine]),
                self._picture,
                widgets.HBox([self._prompt, add_request]),
                self._news,
            ]
        )

    def _on_slide(self, change: Any) -> None:
        snapshot = self._stepper.snapshots[change["new"]]
        self._picture.value = pool_html(snapshot)
        self._session.note("pool-step", {"topic": f"looked at step {snapshot.step}", "said": snapshot.said})

    def _on_step(self, _: widgets.Button) -> None:
        """The next snapshot that is there already, else a step of the engine."""
        if self._slider.value < self._stepper.last.step:
            self._show(self._slider.value + 1)
        elif self._stepper.is_idle:
            self._say(IDLE)
        else:
            self._show(self._stepper.step().step)

    def _on_add(self, _: widgets.Button) -> None:
        text = self._prompt.value.strip()
        if not text:
            self._say("Write a prompt first.")
            return
        try:
            name = self._stepper.arrive(self._stepper.encode(text), ANSWER_TOKENS)
        except RequestError as error:
            self._say(f"Refused: {error}")
            return
        self._session.note("pool-request", {"topic": f"request {name}", "prompt": text})
        self._prompt.value = ""
        self._show(self._stepper.last.step)
        self._say(f"{name} has arrived. Press “Step engine”.")

    def _show(self, step: int) -> None:
        self._slider.max = self._stepper.last.step  # cells step the engine, too
        self._slider.value = step
        self._say("")

    def _say(self, text: str) -> None:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self._news.value = f'<p aria-live="polite">{escaped}</p>' if text else ""
