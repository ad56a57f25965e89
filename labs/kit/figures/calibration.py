"""Predicted against measured ratio, a row for each topic, on a logarithmic scale."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from labbook.figures import COLOURS, DrawnFigure, draw, finished
from labbook.output import printable
from labs.kit.calibration import Calibration, Judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = "Predicted and measured, by topic"
_X_LABEL = "multiple of the baseline (logarithmic)"
_LABEL_WIDTH = 38
_ROW_INCHES = 0.36
_LEAST_SHOWN = 0.01  # where a measured 0 is drawn, when nothing else lies further left


def calibration_figure(calibration: Calibration) -> DrawnFigure:
    """The last own prediction of every topic: an open circle, a line, and a filled marker for what was measured."""
    rows = list(calibration.latest_by_topic.values())
    caption = (
        f"n = {len(rows)} topics, each the last time it was predicted; placeholders not drawn: "
        f"{calibration.num_defaults}; every point is a ratio, whatever the device"
    )
    figure, axes = draw(_TITLE, _X_LABEL, "", caption)
    figure.set_size_inches(7.6, 2.2 + _ROW_INCHES * max(len(rows), 2))
    if rows:
        _draw_rows(axes, rows)
    else:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no prediction of your own yet", ha="center", va="center", transform=axes.transAxes)
    return finished(figure, calibration_sentence(calibration), caption)


def calibration_sentence(calibration: Calibration) -> str:
    """What the rows show, in words: the topic that was missed by most is named."""
    rows = list(calibration.latest_by_topic.values())
    head = f"Predicted against measured ratio of {len(rows)} topics: {calibration.score.sentence}"
    missed = [(one.factor, one.topic) for one in rows if one.factor is not None]
    if not missed:
        return f"{head}."
    factor, topic = max(missed, key=lambda pair: pair[0])
    return f"{head}; furthest off is {topic}, by a factor of {factor:.2g}."


def _draw_rows(axes: Axes, rows: list[Judged]) -> None:
    positive = [ratio for one in rows for ratio in (one.predicted, one.measured) if ratio > 0]
    left = min([_LEAST_SHOWN, *positive] if any(one.measured <= 0 for one in rows) else positive) / 1.5
    right = max([1.0, *positive]) * 1.5
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    for place, one in enumerate(rows):
        measured = one.measured if one.measured > 0 else left * 1.2
        axes.plot([one.predicted, measured], [place, place], color="black", linewidth=0.8, zorder=1)
        axes.plot(one.predicted, place, "o", color=COLOURS[0], markerfacecolor="white", zorder=2)
        axes.plot(measured, place, _marker(one), color=_colour(one), zorder=3)
    axes.axvline(1.0, color="black", linestyle=":", linewidth=1)
    axes.set_yticks(range(len(rows)), [textwrap.shorten(printable(one.topic), _LABEL_WIDTH) for one in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    _legend(axes, rows)


def _marker(one: Judged) -> str:
    """A triangle to the left is a measured 0, which has no place on this scale."""
    if one.measured <= 0:
        return "<"
    return {"supported": "s", "refuted": "X", "inconclusive": "^"}[one.verdict]


def _colour(one: Judged) -> str:
    return {"supported": COLOURS[2], "refuted": COLOURS[5], "inconclusive": COLOURS[3]}[one.verdict]


def _legend(axes: Axes, rows: list[Judged]) -> None:
    axes.plot([], [], "o", color=COLOURS[0], markerfacecolor="white", label="predicted")
    for verdict in ("supported", "refuted", "inconclusive"):
        shown = next((one for one in rows if one.verdict == verdict and one.measured > 0), None)
        if shown is not None:
            axes.plot([], [], _marker(shown), color=_colour(shown), label=f"measured, {verdict}")
    if any(one.measured <= 0 for one in rows):
        axes.plot([], [], "<", color="black", label="measured 0")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
