"""One run of one notebook: what it predicts, measures and judges goes to the labbook, in that order."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from labbook.book import Labbook
from labbook.record import Record
from labs.kit.course_record import course_record
from labs.kit.guess import Guess
from labs.kit.parameters import Parameters
from labs.kit.placeholders import is_placeholder
from labs.kit.predictions import Direction, Outcome, Prediction, PredictionError


class Session:
    """`notebook` is the file's name without its ending; `records` are those that this run appended."""

    def __init__(self, notebook: str, parameters: Parameters) -> None:
        self.notebook = notebook
        self.book = Labbook(parameters.labbook)
        self.book.check_writable_place()
        self.records: list[Record] = []
        self._guesses: list[Guess] = []

    def add(self, record: Record) -> Record:
        """Append a measured record."""
        self.records.append(self.book.append(record))
        return record

    def predict(
        self, topic: str, direction: Direction, ratio: float, smallest_effect: float = 0.15, *, is_mine: bool = False
    ) -> Guess:
        """Write a prediction down, before the measurement runs. Raises PredictionError.

        What equals the notebook's placeholder is recorded as nobody's own (`is_default`), unless `is_mine` says that
        the learner means it. An open prediction of the same topic, not measured yet, is replaced; but a placeholder
        never replaces a learner's own: running the cell again must not lose what was set in the form.
        """
        prediction = Prediction(topic, direction, ratio, smallest_effect)
        is_default = is_placeholder(prediction) and not is_mine
        before = next((guess for guess in reversed(self._guesses) if guess.topic == topic and guess.is_open), None)
        if before is not None:
            if is_default and not before.is_default:
                return before
            before.is_open = False
        guess = Guess(prediction, self._note_prediction(prediction, is_default, before))
        self._guesses.append(guess)
        return guess

    def revise(self, guess: Guess, direction: Direction, ratio: float) -> Guess:
        """Write another version down as the learner's own. Raises PredictionError when the guess is closed."""
        self._require_predicted(guess)
        if not guess.is_open:
            raise PredictionError(
                f"{guess.topic!r} stays as it is, because its measurement has begun: "
                "to predict anew, run its cell again"
            )
        prediction = Prediction(guess.topic, direction, ratio, guess.prediction.smallest_effect)
        if prediction != guess.prediction or guess.is_default:
            guess.record = self._note_prediction(prediction, False, guess)
            guess.prediction = prediction
        return guess

    @contextmanager
    def measuring(self, guess: Guess) -> Iterator[None]:
        """`with session.measuring(guess):` around the measurement, which closes the prediction.

        Raises PredictionError if it is not written down.
        """
        self._require_predicted(guess)
        guess.is_open = False
        yield

    def judge(self, guess: Guess, measured: Sequence[float], baseline: Sequence[float]) -> Outcome:
        """Compare a prediction with what was measured, and append the outcome. Raises PredictionError."""
        self._require_predicted(guess)
        guess.is_open = False
        outcome = guess.prediction.judge(measured, baseline)
        about = {
            "prediction_id": guess.record["id"],
            "predicted_at": guess.record["recorded_at"],
            "is_default": guess.is_default,
        }
        self.note("outcome", {**outcome.as_dict(), **about})
        return outcome

    def note(self, experiment: str, fields: dict[str, Any]) -> Record:
        """Append a record of the course itself: a prediction, its outcome, an answer in a quiz."""
        return self.add(course_record(experiment, **{"notebook": self.notebook, **fields}))

    def summary(self) -> str:
        """One line for each record of this run: what it is, and what it is about."""
        return "\n".join(f"{number}. {_line(record)}" for number, record in enumerate(self.records, start=1))

    def _note_prediction(self, prediction: Prediction, is_default: bool, replaced: Guess | None) -> Record:
        about = {
            "id": secrets.token_hex(4),
            "replaces": replaced.record["id"] if replaced else None,
            "is_default": is_default,
        }
        return self.note("prediction", {**asdict(prediction), **about})

    def _require_predicted(self, guess: Guess) -> None:
        if guess not in self._guesses:
            topic = getattr(guess, "topic", guess)
            raise PredictionError(f"{topic!r} was not written down first: use session.predict(...)")


def _line(record: Record) -> str:
    about = record.get("topic") or record.get("label") or record.get("question") or "no label"
    return f"{record['experiment']}: {about}"
