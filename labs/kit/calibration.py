"""How well a learner predicts: every judged prediction of a labbook, predicted against measured.

Only predictions that a person set count. Those that a notebook came with and nobody touched are counted apart, and so
are outcomes that do not say whose they are. Records of other labs are no concern here, and a record that cannot be
read is passed over: people edit their labbook.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from labbook.book import Labbook
from labbook.errors import LabbookError
from labbook.record import Record
from labs.kit.course_record import LAB
from labs.kit.predictions import DIRECTIONS, factor_between
from labs.kit.table import text_table

_VERDICTS = ("supported", "refuted", "inconclusive")
_WORDS = ("notebook", "topic", "direction", "verdict", "recorded_at")
_NUMBERS = ("ratio", "measured_ratio")


@dataclass(frozen=True)
class Judged:
    """One prediction and what was measured; ratios are multiples of the baseline.

    `is_own` False: nobody set it, or the record does not say. `key` tells one prediction from another.
    """

    key: str
    notebook: str
    topic: str
    direction: str
    predicted: float
    measured: float
    verdict: str
    recorded_at: str
    is_own: bool

    @property
    def factor(self) -> float | None:
        """How many times the predicted size was too high or too low; None where nothing was measured."""
        factor = factor_between(self.predicted, self.measured)
        return factor if math.isfinite(factor) else None


@dataclass(frozen=True)
class Score:
    """Some predictions in numbers. `factor` is the median of those that have one, None without any."""

    num: int
    right: int
    wrong: int
    undecided: int
    factor: float | None

    @property
    def sentence(self) -> str:
        """Right directions among those that the measurement decided, and the typical size of a miss."""
        if not self.num:
            return "no prediction of your own yet"
        undecided = f", {self.undecided} left open by the measurement" if self.undecided else ""
        size = "" if self.factor is None else f"; sizes off by a factor of {self.factor:.2g} at the median"
        return f"direction right in {self.right} of {self.right + self.wrong}{undecided}{size}"


@dataclass(frozen=True)
class Calibration:
    """`judged` in the order in which they were measured, all of them; the scores are about `own`."""

    judged: tuple[Judged, ...]

    @property
    def own(self) -> tuple[Judged, ...]:
        return tuple(one for one in self.judged if one.is_own)

    @property
    def num_defaults(self) -> int:
        return len(self.judged) - len(self.own)

    @property
    def latest_by_topic(self) -> dict[str, Judged]:
        """Of each topic the last own prediction, by notebook."""
        ordered = sorted(self.own, key=lambda one: one.notebook)  # stable: within a notebook as measured
        return {one.topic: one for one in ordered}

    @property
    def score(self) -> Score:
        return score_of(self.own)

    def halves(self) -> tuple[Score, Score] | None:
        """The earlier and the later half of the own predictions; None below four, where halves say nothing."""
        middle = len(self.own) // 2
        return (score_of(self.own[:middle]), score_of(self.own[middle:])) if middle >= 2 else None

    def by_notebook(self) -> dict[str, Score]:
        names = sorted({one.notebook for one in self.own})
        return {name: score_of([one for one in self.own if one.notebook == name]) for name in names}

    def as_text(self) -> str:
        """Everything in words and two tables: by topic, by notebook, over time."""
        placeholders = f"{self.num_defaults} that nobody set " + ("is" if self.num_defaults == 1 else "are")
        head = f"{len(self.own)} of your own predictions were judged; {placeholders} not counted."
        if not self.own:
            return head
        parts = [head, f"Together: {self.score.sentence}.", self._topics(), self._notebooks()]
        if halves := self.halves():
            parts.append(f"Earlier half: {halves[0].sentence}.\nLater half: {halves[1].sentence}.")
        return "\n\n".join(parts)

    def _topics(self) -> str:
        rows = [
            (one.topic, one.predicted, one.measured, one.factor, one.verdict) for one in self.latest_by_topic.values()
        ]
        return text_table(("topic (last time)", "predicted", "measured", "factor off", "verdict"), rows)

    def _notebooks(self) -> str:
        rows = [
            (name, score.num, score.right, score.wrong, score.undecided, score.factor)
            for name, score in self.by_notebook().items()
        ]
        return text_table(("notebook", "predictions", "right", "wrong", "open", "median factor off"), rows)


def score_of(judged: Sequence[Judged]) -> Score:
    counts = Counter(one.verdict for one in judged)
    factors = [one.factor for one in judged if one.factor is not None]
    right, wrong, undecided = (counts[verdict] for verdict in _VERDICTS)
    return Score(len(judged), right, wrong, undecided, median(factors) if factors else None)


def calibration(records: Iterable[Record]) -> Calibration:
    """From the records of a labbook. A prediction that was judged twice, by a cell that was run again, counts once."""
    found: dict[str, Judged] = {}
    for place, record in enumerate(records):
        if record.get("lab") == LAB and record.get("experiment") == "outcome":
            judged = _judged(record, place)
            if judged is not None:
                found.pop(judged.key, None)  # the later judgement stands, in its place in time
                found[judged.key] = judged
    return Calibration(tuple(found.values()))


def calibration_of(book: Labbook) -> Calibration:
    """The same from the file; of a labbook that is not there yet, an empty one."""
    try:
        return calibration(book.records())
    except LabbookError:
        return Calibration(())


def _judged(record: Record, place: int) -> Judged | None:
    """None for what is no whole outcome."""
    words: dict[str, Any] = {
        name: record.get(name) for name in ("notebook", "topic", "direction", "verdict", "recorded_at")
    }
    numbers: dict[str, Any] = {name: record.get(name) for name in ("ratio", "measured_ratio")}
    if not all(isinstance(word, str) for word in words.values()) or not all(map(_is_number, numbers.values())):
        return None
    if words["direction"] not in DIRECTIONS or words["verdict"] not in _VERDICTS or numbers["ratio"] <= 0:
        return None
    return Judged(
        key=str(record.get("prediction_id") or f"record {place}"),
        notebook=words["notebook"],
        topic=words["topic"],
        direction=words["direction"],
        predicted=float(numbers["ratio"]),
        measured=float(numbers["measured_ratio"]),
        verdict=words["verdict"],
        recorded_at=words["recorded_at"],
        is_own=record.get("is_default") is False,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
