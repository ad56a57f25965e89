"""A timing attack of one tenant on another, and how far its success is from luck.

The victim sends one of several prompts that the attacker can guess. The attacker sends all of them and takes the one
that was answered first. What the cache restored for each is noted beside it: only the operator can see that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any

UNLIKELY = 0.05

Ask = Callable[[str], float]
"""Send a prompt; the seconds until its answer."""


@dataclass(frozen=True)
class Case:
    """The prompts that the attacker tries, and the one that the victim sent: one of them, or none."""

    candidates: tuple[str, ...]
    sent: str

    @property
    def secret(self) -> int | None:
        return self.candidates.index(self.sent) if self.sent in self.candidates else None


@dataclass(frozen=True)
class Round:
    """One case, played. Times and restored tokens stand in the order of the candidates."""

    secret: int | None
    seconds: tuple[float, ...]
    restored_tokens: tuple[int, ...]

    @property
    def by_clock(self) -> int:
        """The candidate that was answered first. There always is one, whatever the victim sent."""
        return self.seconds.index(min(self.seconds))

    @property
    def by_counts(self) -> int | None:
        """The candidate that restored more than every other; None when no single one did."""
        most = max(self.restored_tokens)
        return self.restored_tokens.index(most) if self.restored_tokens.count(most) == 1 else None


@dataclass(frozen=True)
class Attack:
    rounds: tuple[Round, ...]

    @property
    def chance(self) -> float:
        """The share of right answers that guessing gives in the long run."""
        return 1 / len(self.rounds[0].seconds)

    @property
    def num_right_by_clock(self) -> int:
        return sum(one.by_clock == one.secret for one in self.rounds)

    @property
    def num_right_by_counts(self) -> int:
        return sum(one.secret is not None and one.by_counts == one.secret for one in self.rounds)

    @property
    def luck(self) -> float:
        """How likely guessing alone is right as often as the clock was, or more often (binomial)."""
        return probability_of_luck(self.num_right_by_clock, len(self.rounds), self.chance)

    @property
    def right_s(self) -> list[float]:
        """Seconds for what the victim had sent."""
        return [one.seconds[one.secret] for one in self.rounds if one.secret is not None]

    @property
    def wrong_s(self) -> list[float]:
        return [s for one in self.rounds for place, s in enumerate(one.seconds) if place != one.secret]

    def as_dict(self) -> dict[str, Any]:
        """The fields for a record."""
        return {
            "rounds": [asdict(one) for one in self.rounds],
            "chance": self.chance,
            "num_right_by_clock": self.num_right_by_clock,
            "num_right_by_counts": self.num_right_by_counts,
            "luck": self.luck,
        }

    def said_by_clock(self) -> str:
        """What the attacker learned from the clock alone, against guessing."""
        right, all_rounds = self.num_right_by_clock, len(self.rounds)
        learned = "That is more than luck." if self.luck < UNLIKELY else "Luck explains it: nothing was learned."
        return (
            f"By the clock alone the attacker named the right prompt in {right} of {all_rounds} rounds. Guessing is "
            f"right in {self.chance:.0%} of them, and does as well as this with probability {self.luck:.2g}. {learned}"
        )

    def said_by_counts(self) -> str:
        """What the operator's counters show, the same on every machine."""
        singled_out = sum(one.by_counts is not None for one in self.rounds)
        restored = [tokens for one in self.rounds for tokens in one.restored_tokens]
        return (
            f"Counts single out one prompt in {singled_out} of {len(self.rounds)} rounds, the victim's in "
            f"{self.num_right_by_counts}. Probes restored {min(restored)} to {max(restored)} tokens."
        )


def play(victim: Ask, attacker: Ask, case: Case, hits_tokens: Callable[[], int]) -> Round:
    """The victim sends its prompt, then the attacker sends every candidate once: a probe leaves pages, too."""
    victim(case.sent)
    seconds, restored = [], []
    for candidate in case.candidates:
        before = hits_tokens()
        seconds.append(attacker(candidate))
        restored.append(hits_tokens() - before)
    return Round(case.secret, tuple(seconds), tuple(restored))


def attack(victim: Ask, attacker: Ask, cases: Sequence[Case], hits_tokens: Callable[[], int]) -> Attack:
    return Attack(tuple(play(victim, attacker, case, hits_tokens) for case in cases))


def make_cases(
    prompt: Callable[[int, str], str], secrets: Sequence[str], numbers: Sequence[int], seed: int
) -> list[Case]:
    """A case for each number: `prompt(number, secret)` for every secret in shuffled order, one of them sent."""
    generator = random.Random(f"cases {seed}")
    cases = []
    for number in numbers:
        candidates = [prompt(number, secret) for secret in generator.sample(secrets, len(secrets))]
        cases.append(Case(tuple(candidates), generator.choice(candidates)))
    return cases


def probability_of_luck(num_right: int, num_rounds: int, chance: float) -> float:
    """P(at least `num_right` of `num_rounds` guesses are right), each with probability `chance`."""
    return sum(
        comb(num_rounds, right) * chance**right * (1 - chance) ** (num_rounds - right)
        for right in range(num_right, num_rounds + 1)
    )
