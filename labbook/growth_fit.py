"""Two lines through the times of a growth run, with bootstrap intervals.

Least squares through the median time at each length. For the intervals the pairs of each length are drawn again with
replacement (a bootstrap within strata: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section
3.2), so that every resample has all lengths.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from labbook.growth_run import GrowthRun
from labbook.signals import RATIO_BOUND, SOME_IS_SAVED_BELOW, Signal
from labbook.statistics import RESAMPLES, Interval, Line, again, interval_of, least_squares

METHOD = "least squares through the median at each length; percentile bootstrap of the pairs of each length"
FIT_CONFIDENCE = 0.99  # drawn from a few pairs of each length, an interval is narrower than it says
UNIT = "warm / cold slope"


@dataclass(frozen=True)
class Point:
    """One pair: lengths in tokens or words, times in milliseconds."""

    cold_length: float
    cold_ms: float
    warm_length: float
    warm_ms: float


@dataclass(frozen=True)
class Fit:
    """Milliseconds at no length at all, and milliseconds for each further token or word."""

    fixed_ms: Interval
    slope_ms: Interval


@dataclass(frozen=True)
class Growth:
    cold: Fit
    warm: Fit
    slope_ratio: Interval | None  # None where the cold line does not surely rise


def points_by_length(run: GrowthRun) -> dict[int, list[Point]]:
    """The pairs of each length, by its words."""
    points: dict[int, list[Point]] = {}
    for words, cold, warm in run.pairs():
        point = Point(
            run.length(words, cold), run.seconds(cold) * 1000, run.length(words, warm), run.seconds(warm) * 1000
        )
        points.setdefault(words, []).append(point)
    return points


def fit(strata: Sequence[Sequence[Point]], seed: int = 0, confidence: float = FIT_CONFIDENCE) -> Growth:
    """The two lines. Raises ValueError for fewer than two lengths."""
    cold, warm = _lines(strata)
    generator = random.Random(f"growth {seed}")
    drawn = [_lines([again(points, generator) for points in strata]) for _ in range(RESAMPLES)]

    def fitted(line: Line, lines: list[Line]) -> Fit:
        return Fit(
            interval_of([one.fixed for one in lines], line.fixed, confidence, seed),
            interval_of([one.slope for one in lines], line.slope, confidence, seed),
        )

    cold_fit = fitted(cold, [one for one, _ in drawn])
    warm_fit = fitted(warm, [one for _, one in drawn])
    ratio = None
    if cold_fit.slope_ms.low > 0:
        ratios = [one_warm.slope / one_cold.slope for one_cold, one_warm in drawn if one_cold.slope > 0]
        ratio = interval_of(ratios, warm.slope / cold.slope, confidence, seed)
    return Growth(cold_fit, warm_fit, ratio)


def _lines(strata: Sequence[Sequence[Point]]) -> tuple[Line, Line]:
    """The cold and the warm line through the medians of each length."""
    cold = [(median(p.cold_length for p in points), median(p.cold_ms for p in points)) for points in strata]
    warm = [(median(p.warm_length for p in points), median(p.warm_ms for p in points)) for points in strata]
    return least_squares(cold), least_squares(warm)


def clock_signal(growth: Growth, per: str) -> Signal:
    """What the two slopes support: a warm line that hardly rises is reuse, one that rises like the cold one is none."""
    cold, warm, ratio = growth.cold.slope_ms, growth.warm.slope_ms, growth.slope_ratio
    said = f"{cold.value:.3f} ms a {per} cold, {warm.value:.3f} ms a {per} warm"
    if ratio is None:
        doubt = f"{said}: the cold time does not surely grow with the prompt, use a longer prefix"
        return Signal(warm.value / cold.value if cold.value else None, UNIT, None, doubt)
    why = f"{said}; ratio {ratio.value:.3f}, {ratio.low:.3f} to {ratio.high:.3f} {ratio.held}"
    details = {"interval": ratio.as_dict()}
    if ratio.high < RATIO_BOUND:
        return Signal(ratio.value, UNIT, "reused", why, details)
    if ratio.low > RATIO_BOUND and ratio.high > SOME_IS_SAVED_BELOW:
        return Signal(ratio.value, UNIT, "not_reused", why, details)
    return Signal(ratio.value, UNIT, None, f"{why}: more repeats or a longer prefix would tell", details)
