"""A prediction made before a measurement, and the verdict that the measurement gives it.

A verdict compares an interval of the measured ratio with what the direction claims. It is a test of two one-sided
hypotheses: `supported` and `refuted` need the whole interval on one side of the smallest effect of interest, and
"same" claims equivalence, which a mere lack of difference does not support. D. J. Schuirmann, A comparison of the two
one-sided tests procedure and the power approach (1987); the interval here has 95 %, theirs 90 %.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal, get_args

from labbook.statistics import Interval, again, bootstrap

Direction = Literal["smaller", "same", "larger"]
Word = Literal["supported", "refuted", "inconclusive"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

RIGHT_BELOW_FACTOR = 1.1
# A resampled median of fewer values nearly always reaches from the least to the largest of them, and then the limits
# may as well say so.
ENOUGH_REPEATS = 6
RESAMPLES = 1000


class PredictionError(ValueError):
    """A prediction that cannot be judged; the message says what to change."""


@dataclass(frozen=True)
class Prediction:
    """`ratio` is the expected size: measured value / baseline, so 0.25 means a quarter of it.

    A change of less than `smallest_effect` (0.15: 15 % of the baseline) counts as no change worth naming.
    """

    topic: str
    direction: Direction
    ratio: float
    smallest_effect: float = 0.15

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise PredictionError(f"direction is {self.direction!r}: choose from {', '.join(DIRECTIONS)}")
        if not (math.isfinite(self.ratio) and self.ratio > 0):
            raise PredictionError(f"ratio is {self.ratio}: give measured / baseline, a number above 0")
        if not 0 < self.smallest_effect < 1:
            raise PredictionError(f"smallest_effect is {self.smallest_effect}: give a share between 0 and 1")
        if direction_of(self.ratio, self.smallest_effect) != self.direction:
            low, high = _same(self.smallest_effect)
            raise PredictionError(
                f"direction {self.direction!r} and ratio {self.ratio:g} contradict each other: "
                f"'same' is {low:g} to {high:g}, 'smaller' is below, 'larger' above"
            )

    def __str__(self) -> str:
        return f"{self.topic}: {self.direction}, about {self.ratio:g} of the baseline"

    def judge(self, measured: Sequence[float], baseline: Sequence[float]) -> Outcome:
        """Compare the median measured value with the median of the baseline.

        Supported: the interval of their ratio lies where the direction says. Refuted: all of it lies elsewhere. Else
        inconclusive: there are too few values, or they spread too far. The interval is a bootstrap's where both sides
        have six values or more; of fewer it reaches from the least to the largest ratio of any two values. Raises
        PredictionError when there is nothing to compare.
        """
        if not measured or not baseline or min(baseline) <= 0:
            raise PredictionError(f"cannot judge {self.topic!r}: both sides need values, the baseline above 0")
        interval = _ratio_interval(measured, baseline)
        return Outcome(self, interval, (len(measured), len(baseline)), self._verdict(interval))

    def _verdict(self, interval: Interval) -> Word:
        low, high = (direction_of(limit, self.smallest_effect) for limit in (interval.low, interval.high))
        if low == high == self.direction:
            return "supported"
        reached = DIRECTIONS[DIRECTIONS.index(low) : DIRECTIONS.index(high) + 1]
        return "inconclusive" if self.direction in reached else "refuted"


def direction_of(ratio: float, smallest_effect: float) -> Direction:
    """What a measured ratio is called, when less than `smallest_effect` is no change worth naming."""
    low, high = _same(smallest_effect)
    if ratio < low:
        return "smaller"
    return "larger" if ratio > high else "same"


def _same(smallest_effect: float) -> tuple[float, float]:
    return 1 - smallest_effect, 1 + smallest_effect


def _ratio_interval(measured: Sequence[float], baseline: Sequence[float]) -> Interval:
    value = median(measured) / median(baseline)
    if min(len(measured), len(baseline)) < ENOUGH_REPEATS:
        ratios = [one / other for one in measured for other in baseline]
        return Interval(value, min(ratios), max(ratios), None, 0, 0)

    def draw(generator: random.Random) -> float:
        return median(again(measured, generator)) / median(again(baseline, generator))

    return bootstrap(draw, value, resamples=RESAMPLES)


@dataclass(frozen=True)
class Outcome:
    """`interval` is that of the ratio of the medians; `num_values` counts measured and baseline values."""

    prediction: Prediction
    interval: Interval
    num_values: tuple[int, int]
    verdict: Word

    @property
    def ratio(self) -> float:
        return self.interval.value

    @property
    def low(self) -> float:
        return self.interval.low

    @property
    def high(self) -> float:
        return self.interval.high

    @property
    def off_by_factor(self) -> float:
        """How far the predicted size was from the measured one: 1 is exact, 3 is three times too high or too low."""
        return factor_between(self.prediction.ratio, self.ratio)

    @property
    def reason(self) -> str:
        """The verdict in a sentence, with the numbers."""
        said = self.prediction
        return (
            f"{said.topic}: {self.verdict}. You said {said.direction}, about {said.ratio:g} of the baseline. "
            f"It was {self.ratio:.2f}{self._spread}{self._about_the_size}"
        )

    @property
    def _spread(self) -> str:
        """The limits, and what they are worth."""
        if self.num_values == (1, 1):
            return ""
        reach = f"{self.low:.2f} to {self.high:.2f}"
        measured, baseline = self.num_values
        if self.interval.confidence is not None:
            return f" ({reach} {self.interval.held}, from {measured} and {baseline} values)"
        return f" (single pairs {reach}; {measured} and {baseline} values are too few for more)"

    @property
    def _about_the_size(self) -> str:
        if self.ratio <= 0:
            return "."
        if self.off_by_factor < RIGHT_BELOW_FACTOR:
            return ", so your size was right."
        return f", so your size was off by a factor of {self.off_by_factor:.1f}."

    def as_dict(self) -> dict[str, Any]:
        """The fields for a record: the prediction's own, and what was measured."""
        factor = self.off_by_factor
        return {
            **asdict(self.prediction),
            "measured_ratio": round(self.ratio, 4),
            "measured_low": round(self.low, 4),
            "measured_high": round(self.high, 4),
            "confidence": self.interval.confidence,
            "num_measured": self.num_values[0],
            "num_baseline": self.num_values[1],
            "off_by_factor": round(factor, 3) if math.isfinite(factor) else None,
            "verdict": self.verdict,
            "verdict_reason": self.reason,
        }


def factor_between(predicted: float, measured: float) -> float:
    """How many times one is the other, whichever is larger; infinite where nothing, or less, was measured."""
    return max(measured / predicted, predicted / measured) if measured > 0 else math.inf
