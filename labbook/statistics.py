"""Ratios of times with a bootstrap interval, in pure Python.

Percentile bootstrap: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. Whole groups
are drawn, because requests of one group share what the machine did meanwhile: A. C. Davison and D. V. Hinkley,
Bootstrap Methods and their Application (1997), section 3.8. The statistic is a median of ratios within groups, as in
the estimator of Hodges and Lehmann: a straggler, or a machine that becomes slower between groups, hardly moves it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, TypeVar

CONFIDENCE = 0.95
RESAMPLES = 2000
LEAST_GROUPS = 3
INTERVAL_METHOD = "median of ratios within groups; percentile bootstrap of groups, below 3 of them least and largest"

T = TypeVar("T")


@dataclass(frozen=True)
class Interval:
    """A value and the limits that hold it with `confidence`. The unit is that of the value.

    `confidence` None: the limits are the least and the largest of too few values.
    """

    value: float
    low: float
    high: float
    confidence: float | None
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}: a share between 0 and 1 is needed")
        if not self.low <= self.high:
            raise ValueError(f"the interval reaches from {self.low} to {self.high}: low comes first")

    @property
    def held(self) -> str:
        """How sure the limits are, in words."""
        return "least and largest" if self.confidence is None else f"at {self.confidence:.0%}"

    def as_dict(self) -> dict[str, Any]:
        """JSON values, rounded to what a clock can mean."""
        return asdict(self) | {name: round(getattr(self, name), 6) for name in ("value", "low", "high")}


@dataclass(frozen=True)
class TimedGroup:
    """Seconds of requests that were sent close together: those that are judged, and those that reuse nothing."""

    judged_s: tuple[float, ...]
    without_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.judged_s or not self.without_s:
            raise ValueError("a group needs a judged time and one without reuse")

    def ratios(self) -> list[float]:
        """Every judged time over every time without reuse. A clock that saw no time counts its tick."""
        return [one / max(other, 1e-9) for one in self.judged_s for other in self.without_s]


def ratio_interval(groups: Sequence[TimedGroup], confidence: float = CONFIDENCE, seed: int = 0) -> Interval:
    """The median over all ratios within groups, with its interval.

    Fewer than three groups are too few to draw from: then the interval reaches from the least to the largest ratio, and
    has no confidence. Raises ValueError when there is no group.
    """
    if not groups:
        raise ValueError("there is no group of times")
    ratios = [group.ratios() for group in groups]
    if len(groups) < LEAST_GROUPS:
        return whole_range([ratio for group in ratios for ratio in group])
    return bootstrap(
        lambda generator: _median_of(generator.choices(ratios, k=len(ratios))),
        _median_of(ratios),
        confidence,
        seed=seed,
    )


def whole_range(values: Sequence[float]) -> Interval:
    """The median between the least and the largest value: what can be said of too few."""
    return Interval(median(values), min(values), max(values), None, 0, 0)


def bootstrap(
    draw: Callable[[random.Random], float],
    value: float,
    confidence: float = CONFIDENCE,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The percentile interval of `draw`, which computes the statistic of one resample. The same for the same seed."""
    generator = random.Random(f"bootstrap {seed}")
    return interval_of([draw(generator) for _ in range(resamples)], value, confidence, seed)


def interval_of(drawn: Sequence[float], value: float, confidence: float, seed: int) -> Interval:
    """The percentile interval of statistics that were computed from resamples."""
    ordered = sorted(drawn)
    tail, last = (1 - confidence) / 2, len(ordered) - 1
    low, high = ordered[math.floor(tail * last)], ordered[math.ceil((1 - tail) * last)]
    return Interval(value, low, high, confidence, len(ordered), seed)


def _median_of(ratios: Sequence[Sequence[float]]) -> float:
    return median([ratio for group in ratios for ratio in group])


def again(values: Sequence[T], generator: random.Random) -> tuple[T, ...]:
    """As many values, drawn with replacement."""
    return tuple(generator.choices(values, k=len(values)))


@dataclass(frozen=True)
class Line:
    """y = fixed + slope * x."""

    fixed: float
    slope: float


def least_squares(points: Sequence[tuple[float, float]]) -> Line:
    """The line with the least sum of squared vertical distances. Raises ValueError unless two x differ."""
    if len({x for x, _ in points}) < 2:
        raise ValueError("a line needs points at two different places")
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return Line(mean_y - slope * mean_x, slope)
