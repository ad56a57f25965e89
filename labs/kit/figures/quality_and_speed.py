"""Decode time and divergence of each number format, side by side: neither is ever shown without the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from labbook.figures import COLOURS, HATCHES, DrawnFigure, draw, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "What fewer bits cost"


def quality_and_speed(
    decode_ms: Mapping[str, Sequence[float]], mean_kl_nats: Mapping[str, float], *, caption: str
) -> DrawnFigure:
    """Two panels over the same formats: all values of a decode step, and the mean KL divergence.

    Raises ValueError when a format has one and not the other.
    """
    if not decode_ms or decode_ms.keys() != mean_kl_nats.keys():
        raise ValueError(f"time of {list(decode_ms)} and divergence of {list(mean_kl_nats)}: give both of each")
    figure, left = draw("Time", "", "one decode step (ms)", caption)
    grid = figure.add_gridspec(1, 2)
    left.set_subplotspec(grid[0])
    right = figure.add_subplot(grid[1], facecolor="white")
    right.set_title("Divergence")
    right.set_ylabel("mean KL (nats)")
    right.spines[["top", "right"]].set_visible(False)
    right.grid(axis="y", linewidth=0.5, alpha=0.5)
    right.set_axisbelow(True)
    figure.suptitle(TITLE)
    _bars(left, {name: list(values) for name, values in decode_ms.items()}, "{:.0f}")
    _bars(right, {name: [value] for name, value in mean_kl_nats.items()}, "{:.2g}")
    return finished(figure, _sentence(decode_ms, mean_kl_nats), caption)


def _bars(axes: Axes, values: Mapping[str, list[float]], form: str) -> None:
    for place, one in enumerate(values.values()):
        middle = median(one)
        spread = [[middle - min(one)], [max(one) - middle]]
        axes.bar(
            place,
            middle,
            width=0.7,
            yerr=spread if len(one) > 1 else None,
            capsize=4,
            color=COLOURS[place % len(COLOURS)],
            hatch=HATCHES[place % len(HATCHES)],
            edgecolor="black",
            linewidth=0.8,
        )
        axes.annotate(form.format(middle), (place, max(one)), (0, 3), textcoords="offset points", ha="center")
    axes.set_xticks(range(len(values)), list(values))
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)


def _sentence(decode_ms: Mapping[str, Sequence[float]], mean_kl_nats: Mapping[str, float]) -> str:
    told = [
        f"{name} take {median(values):.0f} ms a decode step and diverge by {mean_kl_nats[name]:.2g} nats"
        for name, values in decode_ms.items()
    ]
    return f"{TITLE}: {'; '.join(told)}."
