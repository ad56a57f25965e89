"""What others have published about the same question, held against what this machine measured."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from labs.kit.predictions import Outcome, Prediction, Word

_WIDTH = 100


@dataclass(frozen=True)
class Report:
    """A published result. It is confirmed when `claim`, judged on your values, gets the verdict `confirmed_by`.

    "Not better" is what a refuted "smaller" says, so such a report has the claim that it denies, and "refuted".
    """

    text: str
    claim: Prediction
    confirmed_by: Word = "supported"

    def compare(self, measured: Sequence[float], baseline: Sequence[float]) -> str:
        """A sentence on whether this machine agrees, with its ratio and the spread. Raises PredictionError."""
        outcome = self.claim.judge(measured, baseline)
        here = f"This machine {self._verb(outcome)}: {_numbers(outcome)}."
        return f"{_wrapped(f'Published: {self.text}')}\n{_wrapped(here)}"

    def _verb(self, outcome: Outcome) -> str:
        if outcome.verdict == "inconclusive":
            return "cannot tell, its values spread too far"
        return "agrees" if outcome.verdict == self.confirmed_by else "disagrees"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH)


def _numbers(outcome: Outcome) -> str:
    return f"{outcome.ratio:.2f} times the baseline (single pairs {outcome.low:.2f} to {outcome.high:.2f})"


GAINS_NOTHING = Report(
    "a cold burst of 4 gains nothing from the cache (3 %, within the spread) while nothing is coordinated.",
    Prediction("a cold burst of 4, cache on against cache off", "same", 1.0, smallest_effect=0.15),
)
EARLY_RELEASE_SHOWS_SOONER = Report(
    "releasing after prefill beats releasing at the end on the first token.",
    Prediction("first token, early release against late", "smaller", 0.6, smallest_effect=0.1),
)
EARLY_RELEASE_ENDS_NO_SOONER = Report(
    "when the second request comes late, releasing after prefill makes the slowest completion no better (14 % longer).",
    Prediction("slowest completion, early release against late", "smaller", 0.9, smallest_effect=0.05),
    confirmed_by="refuted",
)
