"""Lines and bars with the sentence that says the same. A figure with a form of its own gets a file of its own here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from labbook.figures import MARKERS, DrawnFigure, draw, finished

Points = Sequence[tuple[float, float | Sequence[float]]]
"""(x, y), or (x, all values measured there): the line goes through their median, with the least and the largest."""


def lines(
    title: str, x_label: str, y_label: str, series: Mapping[str, Points], *, unit: str, caption: str
) -> DrawnFigure:
    """One marked line for each name. `unit` is that of y, for the sentence; `caption` names n and the device."""
    _require(series, title)
    figure, axes = draw(title, x_label, y_label, caption)
    for number, (name, points) in enumerate(series.items()):
        places, middles = [x for x, _ in points], [_middle(y) for _, y in points]
        below = [_middle(y) - min(_values(y)) for _, y in points]
        above = [max(_values(y)) - _middle(y) for _, y in points]
        axes.errorbar(
            places,
            middles,
            yerr=(below, above),
            label=name,
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            linewidth=1.2,
        )
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return finished(
        figure, f"{title}: {'; '.join(_course(name, points, unit) for name, points in series.items())}.", caption
    )


def bars(
    title: str, y_label: str, values: Mapping[str, float | Sequence[float]], *, unit: str, caption: str
) -> DrawnFigure:
    """One bar for each name, at the median of its values, with a line from the least to the largest."""
    _require(values, title)
    figure, axes = draw(title, "", y_label, caption)
    for place, value in enumerate(values.values()):
        spread = [[_middle(value) - min(_values(value))], [max(_values(value)) - _middle(value)]]
        axes.bar(
            place, _middle(value), width=0.6, yerr=spread, capsize=4, color="#4477aa", edgecolor="black", linewidth=0.6
        )
        axes.annotate(
            _number(_middle(value)), (place, max(_values(value))), (0, 3), textcoords="offset points", ha="center"
        )
    axes.set_xticks(range(len(values)), list(values))
    said = ", ".join(f"{name} {_number(_middle(value))} {unit}".rstrip() for name, value in values.items())
    return finished(figure, f"{title}: {said}.", caption)


def _course(name: str, points: Points, unit: str) -> str:
    (first_x, first_y), (last_x, last_y) = points[0], points[-1]
    start, end = _number(_middle(first_y)), _number(_middle(last_y))
    if len(points) == 1:
        return f"{name} is {start} {unit} at {_number(first_x)}".replace("  ", " ")
    return f"{name} goes from {start} to {end} {unit} between {_number(first_x)} and {_number(last_x)}".replace(
        "  ", " "
    )


def _require(given: Mapping[str, object], title: str) -> None:
    if not given or not all(value if isinstance(value, Sequence) else True for value in given.values()):
        raise ValueError(f"the figure {title!r} has a series without values: {list(given)}")


def _values(value: float | Sequence[float]) -> Sequence[float]:
    return value if isinstance(value, Sequence) else (value,)


def _middle(value: float | Sequence[float]) -> float:
    return median(_values(value))


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
