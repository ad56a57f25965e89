"""A prediction as a form without a screen: two answers that cannot contradict each other, and one way to hand it in."""

from __future__ import annotations

from labs.kit.guess import Guess
from labs.kit.predictions import Direction, PredictionError, direction_of
from labs.kit.session import Session

LEAST_RATIO, LARGEST_RATIO = 0.001, 1000.0


class PredictionForm:
    """Direction and size are two views of one answer: each follows the other. Nothing counts until `write_down`."""

    def __init__(self, guess: Guess, session: Session) -> None:
        self._guess = guess
        self._session = session
        self.direction: Direction = guess.prediction.direction
        self.ratio: float = guess.prediction.ratio
        self.status = guess.sentence

    @property
    def question(self) -> str:
        return f"{self._guess.topic}: how large, measured in the baseline?"

    def choose_direction(self, direction: Direction) -> None:
        self.direction = direction
        if self._direction_of(self.ratio) != direction:
            self.ratio = _usual_ratio(direction, self._guess.prediction.smallest_effect)
        self._changed()

    def choose_ratio(self, ratio: float) -> None:
        self.ratio = min(max(float(f"{ratio:.3g}"), LEAST_RATIO), LARGEST_RATIO)
        self.direction = self._direction_of(self.ratio)
        self._changed()

    def write_down(self) -> str:
        """Record what is chosen, and say what was recorded, or why not."""
        try:
            self.status = self._session.revise(self._guess, self.direction, self.ratio).sentence
        except PredictionError as refusal:
            self.status = f"Not recorded: {refusal}."
        return self.status

    def _changed(self) -> None:
        self.status = f"Not written down yet: {self.direction}, about {self.ratio:g} of the baseline."

    def _direction_of(self, ratio: float) -> Direction:
        return direction_of(ratio, self._guess.prediction.smallest_effect)


def _usual_ratio(direction: Direction, smallest_effect: float) -> float:
    """Where the size goes when a direction is chosen that it does not fit."""
    if direction == "same":
        return 1.0
    usual, bound = (0.5, 1 - smallest_effect) if direction == "smaller" else (2.0, 1 + smallest_effect)
    return usual if direction_of(usual, smallest_effect) == direction else float(f"{usual * bound:.3g}")
