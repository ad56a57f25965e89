"""A prediction made before a measurement, and the verdict that the measurement gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal, get_args

Direction = Literal["smaller", "same", "larger"]
Word = Literal["supported", "refuted", "inconclusive"]

RIGHT_BELOW_FACTOR = 1.1


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
        if self.direction not in get_args(Direction):
            raise PredictionError(f"direction is {self.direction!r}: choose from {', '.join(get_args(Direction))}")
        if not (math.isfinite(self.ratio) and self.ratio > 0):
            raise PredictionError(f"ratio is {self.ratio}: give measured / baseline, a number above 0")
        if not 0 < self.smallest_effect < 1:
            raise PredictionError(f"smallest_effect is {self.smallest_effect}: give a share between 0 and 1")
        if self._direction_of(self.ratio, self.ratio) != self.direction:
            raise PredictionError(
                f"direction {self.direction!r} and ratio {self.ratio:g} contradict each other: "
                f"'same' is {self._low:g} to {self._high:g}, 'smaller' is below, 'larger' above"
            )

    def judge(self, measured: Sequence[float], baseline: Sequence[float]) -> Outcome:
        """Compare every measured value with every baseline value.

        Supported: all these ratios lie where the direction says. Refuted: none does. Else inconclusive: there are too
        few values, or they spread too far. Raises PredictionError when there is nothing to compare.
        """
        if not measured or not baseline or min(baseline) <= 0:
            raise PredictionError(f"cannot judge {self.topic!r}: both sides need values, the baseline above 0")
        low, high = min(measured) / max(baseline), max(measured) / min(baseline)
        return Outcome(self, median(measured) / median(baseline), low, high, self._verdict(low, high))

    @property
    def _low(self) -> float:
        return 1 - self.smallest_effect

    @property
    def _high(self) -> float:
        return 1 + self.smallest_effect

    def _verdict(self, low: float, high: float) -> Word:
        if self._direction_of(low, high) == self.direction:
            return "supported"
        below, above = low < self._low, high > self._high
        overlaps = {"smaller": below, "larger": above, "same": high >= self._low and low <= self._high}
        return "inconclusive" if overlaps[self.direction] else "refuted"

    def _direction_of(self, low: float, high: float) -> Direction | None:
        if high < self._low:
            return "smaller"
        if low > self._high:
            return "larger"
        return "same" if low >= self._low and high <= self._high else None


@dataclass(frozen=True)
class Outcome:
    """`ratio` of the medians, with the lowest and the highest ratio of any two single values."""

    prediction: Prediction
    ratio: float
    low: float
    high: float
    verdict: Word

    @property
    def off_by_factor(self) -> float:
        """How far the predicted size was from the measured one: 1 is exact, 3 is three times too high or too low."""
        return max(self.ratio / self.prediction.ratio, self.prediction.ratio / self.ratio) if self.ratio else math.inf

    @property
    def reason(self) -> str:
        """The verdict in a sentence, with the numbers."""
        said = self.prediction
        return (
            f"{said.topic}: {self.verdict}. You said {said.direction}, about {said.ratio:g} of the baseline. "
            f"It was {self.ratio:.2f} (single pairs {self.low:.2f} to {self.high:.2f})" + self._about_the_size
        )

    @property
    def _about_the_size(self) -> str:
        if not self.ratio:
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
            "off_by_factor": round(factor, 3) if math.isfinite(factor) else None,
            "verdict": self.verdict,
            "verdict_reason": self.reason,
        }
