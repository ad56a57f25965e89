"""The timeline as a widget: choose a policy, and steps or seconds. All it shows comes from the model in `timeline`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import ipywidgets as widgets

from labs.kit.session import Session
from labs.kit.timeline import UNITS, Timeline, Unit, timelines_text
from labs.kit.timeline_svg import timeline_svg

_TOLD_STYLE = "margin: 4px 0 0; font-size: 12px; line-height: 1.5"


class TimelineBox(widgets.VBox):
    """The outermost box. What it says of itself stays the same in every version of ipywidgets."""

    def __init__(self, timelines: Sequence[Timeline], session: Session) -> None:
        self._timelines = {timeline.policy: timeline for timeline in timelines}
        self._session = session
        # Buttons, not a dropdown: in a notebook JupyterLab takes the arrow keys that a dropdown needs.
        self.policy = widgets.ToggleButtons(options=list(self._timelines), description="Policy")
        self.unit = widgets.ToggleButtons(
            options=[(f"in {told}", unit) for unit, told in UNITS.items()],
            tooltips=["the same on every machine", "as this machine took them"],
            description="Axis",
        )
        self.chart = widgets.HTML()
        super().__init__([self.policy, self.unit, self.chart])
        self.policy.observe(self._on_choice, names="value")
        self.unit.observe(self._on_choice, names="value")
        self._draw()

    def __repr__(self) -> str:
        return f"(a chart for each of {len(self._timelines)} policies; the text above says the same)"

    def _on_choice(self, _: object) -> None:
        self._draw()
        policy, unit = self._chosen()
        self._session.note("timeline-view", {"label": f"{policy}, in {UNITS[unit]}", "policy": policy, "unit": unit})

    def _chosen(self) -> tuple[str, Unit]:
        return self.policy.value, self.unit.value

    def _draw(self) -> None:
        policy, unit = self._chosen()
        longest = max(timeline.length(unit) for timeline in self._timelines.values())
        shown = self._timelines[policy]
        told = "<br>".join(escape(sentence) for sentence in shown.sentences(unit))
        self.chart.value = timeline_svg(shown, unit, longest) + f'<p style="{_TOLD_STYLE}">{told}</p>'


def timeline_view(timelines: Sequence[Timeline], session: Session) -> TimelineBox:
    """Print all charts as text, in steps, and return the box for the last line of a cell."""
    print(timelines_text(timelines))
    return TimelineBox(timelines, session)
