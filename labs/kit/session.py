"""One run of one notebook: what it predicts, measures and judges goes to the labbook, in that order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from labbook.book import Labbook
from labbook.record import RECORD_VERSION, Record, now_iso
from labs.kit.parameters import Parameters
from labs.kit.predictions import Direction, Outcome, Prediction, PredictionError

LAB = "course"


class Session:
    """`notebook` is the file's name without its ending; `records` are those that this run appended."""

    def __init__(self, notebook: str, parameters: Parameters) -> None:
        self.notebook = notebook
        self.book = Labbook(parameters.labbook)
        self.book.check_writable_place()
        self.records: list[Record] = []
        self._predicted_at: dict[Prediction, str] = {}

    def add(self, record: Record) -> Record:
        """Append a measured record."""
        self.records.append(self.book.append(record))
        return record

    def predict(self, topic: str, direction: Direction, ratio: float, smallest_effect: float = 0.15) -> Prediction:
        """Write a prediction down, before the measurement runs. Raises PredictionError."""
        prediction = Prediction(topic, direction, ratio, smallest_effect)
        record = self.note("prediction", asdict(prediction))
        self._predicted_at[prediction] = record["recorded_at"]
        return prediction

    @contextmanager
    def measuring(self, prediction: Prediction) -> Iterator[None]:
        """`with session.measuring(guess):` around the measurement. Raises PredictionError if it is not written down."""
        self._require_predicted(prediction)
        yield

    def judge(self, prediction: Prediction, measured: list[float], baseline: list[float]) -> Outcome:
        """Compare a prediction with what was measured, and append the outcome. Raises PredictionError."""
        self._require_predicted(prediction)
        outcome = prediction.judge(measured, baseline)
        self.note("outcome", {**outcome.as_dict(), "predicted_at": self._predicted_at[prediction]})
        return outcome

    def note(self, experiment: str, fields: dict[str, Any]) -> Record:
        """Append a record of the course itself: a prediction, its outcome, an answer in a quiz."""
        head = {"version": RECORD_VERSION, "lab": LAB, "experiment": experiment, "notebook": self.notebook}
        return self.add({**head, **fields, "recorded_at": now_iso()})

    def _require_predicted(self, prediction: Prediction) -> None:
        if prediction not in self._predicted_at:
            raise PredictionError(f"{prediction.topic!r} was not written down first: use session.predict(...)")

    def summary(self) -> str:
        """One line for each record of this run: what it is, and what it is about."""
        return "\n".join(f"{number}. {_line(record)}" for number, record in enumerate(self.records, start=1))


def _line(record: Record) -> str:
    about = record.get("topic") or record.get("label") or record.get("question") or "no label"
    return f"{record['experiment']}: {about}"
