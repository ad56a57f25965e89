"""What a cache restores of a working set, below and above the capacity of its pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labbook.figures import COLOURS, MARKERS, DrawnFigure, draw, finished

TITLE = "Tokens restored when a working set comes round again"


def capacity_curves(
    curves: Mapping[str, Sequence[tuple[float, int]]], capacity_tokens: int, *, caption: str
) -> DrawnFigure:
    """Lines for two eviction policies over (working set / capacity, tokens restored), with the capacity drawn in.

    Each curve needs a point at capacity (1.0) and one beyond it. Raises ValueError.
    """
    for name, points in curves.items():
        if not {1.0} < {place for place, _ in points if place >= 1.0}:
            raise ValueError(f"the curve {name!r} needs a point at capacity and one beyond it: {list(points)}")
    figure, axes = draw(TITLE, "working set / capacity", "tokens restored in the second cycle", caption)
    for number, (name, points) in enumerate(curves.items()):
        axes.plot(
            *zip(*points, strict=True),
            label=name,
            marker=MARKERS[number],
            markersize=11 - 5 * number,  # where the curves are equal, the first still shows behind the second
            color=COLOURS[number],
            linewidth=3 - 1.8 * number,
        )
    axes.axvline(1.0, color="black", linewidth=0.8, linestyle="--")
    axes.annotate("capacity", (1.0, 0.02), (5, 0), xycoords=("data", "axes fraction"), textcoords="offset points")
    axes.axhline(capacity_tokens / 2, color="black", linewidth=0.8, linestyle=":", label="half of what fits")
    axes.set_ylim(-capacity_tokens * 0.1, capacity_tokens * 1.15)
    axes.legend(frameon=False)
    return finished(figure, f"{TITLE}: {'; '.join(_said(name, points) for name, points in curves.items())}.", caption)


def _said(name: str, points: Sequence[tuple[float, int]]) -> str:
    at_capacity = next(tokens for place, tokens in points if place == 1.0)
    first, last = next(point for point in points if point[0] > 1.0), points[-1]
    return f"{name} {at_capacity} at capacity, {first[1]} at {first[0]:.2f} times it and {last[1]} at {last[0]:g} times"
