"""Timelines of several policies in one figure, in engine steps: the picture that needs no widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labbook.figures import COLOURS, DrawnFigure, draw, finished
from labs.kit.timeline import DECODE, LETTERS, PREFILL, WAITING, Row, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {WAITING: ("white", "////"), PREFILL: (COLOURS[0], ""), DECODE: (COLOURS[2], "...")}
_GAP = 1.6
_LETTER_GROUND = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"}


def burst_bars(title: str, timelines: Sequence[Timeline], caption: str) -> DrawnFigure:
    """A group of bars for each policy, a bar for each request, in steps: the same on every machine."""
    figure, axes = draw(title, "engine steps", "", caption)
    ticks: list[tuple[float, str]] = []
    top = 0.0
    for timeline in timelines:
        axes.text(0, top, timeline.policy, fontsize=10, fontweight="bold", va="center")
        for number, row in enumerate(timeline.rows, start=1):
            _draw_row(axes, timeline, row, top + number)
            ticks.append((top + number, row.name))
        top += len(timeline.rows) + _GAP
    figure.set_size_inches(8.2, 1.6 + 0.27 * top)
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=8)
    axes.set_ylim(top - _GAP + 0.7, -0.8)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", linewidth=0.5, alpha=0.5)
    _draw_legend(axes)
    return finished(figure, f"{title}: {'; '.join(map(_told, timelines))}.", caption)


def _draw_row(axes: Axes, timeline: Timeline, row: Row, place: float) -> None:
    for segment in row.segments:
        start, end = timeline.span(segment, "steps")
        colour, hatch = _LOOKS[segment.state]
        axes.barh(place, end - start, 0.78, start, color=colour, hatch=hatch, edgecolor="black", linewidth=0.7)
        middle = ((start + end) / 2, place)
        axes.annotate(LETTERS[segment.state], middle, ha="center", va="center", fontsize=8, bbox=dict(_LETTER_GROUND))
    if row.released_after is not None:
        axes.plot(row.released_after, place, "D", color=COLOURS[1], markeredgecolor="black", markersize=8)


def _draw_legend(axes: Axes) -> None:
    """Every state is explained, whether or not it occurs."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    states = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.7, label=f"{LETTERS[state]} {state}")
        for state, (colour, hatch) in _LOOKS.items()
    ]
    released = Line2D([], [], marker="D", color=COLOURS[1], markeredgecolor="black", linestyle="none", label="released")
    axes.legend(handles=[*states, released], loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _told(timeline: Timeline) -> str:
    firsts = [row.first_token_step for row in timeline.rows]
    place = f"step {firsts[0]}" if len(set(firsts)) == 1 else f"steps {min(firsts)} to {max(firsts)}"
    computed = sum(row.computed_tokens for row in timeline.rows)
    return f"{timeline.policy}, {timeline.num_steps} steps, first tokens in {place}, {computed} prompt tokens computed"
