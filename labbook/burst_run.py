"""A burst measurement as it was seen, before anything is computed from it."""

from __future__ import annotations

from dataclasses import dataclass

from labbook.answer import Answer
from labbook.counters import CounterWatch
from labbook.identity import ServerFacts
from labbook.run import Plan, Sent


@dataclass(frozen=True)
class Shot:
    """One request of a burst. `at_s` is the moment of sending, on a clock that all requests of a run share."""

    at_s: float
    sent: Sent


@dataclass(frozen=True)
class Burst:
    """Requests that belong together. `why` says why one of them was not sent; empty when all were."""

    kind: str
    shots: tuple[Shot, ...]
    why: str = ""

    @property
    def answers(self) -> list[Answer]:
        return [shot.sent.answer for shot in self.shots if shot.sent.answer]

    @property
    def errors(self) -> list[str]:
        return [shot.sent.error for shot in self.shots if shot.sent.error is not None]


@dataclass(frozen=True)
class BurstRun:
    """Everything that was seen of the bursts, before anything is computed from it."""

    plan: Plan
    model: str
    base_url: str
    num_requests: int
    new_tokens: int
    cold: tuple[Answer, ...]
    bursts: tuple[Burst, ...]
    nonces: dict[str, str | list[str]]
    facts: ServerFacts
    dropped_fields: tuple[str, ...]
    watch: CounterWatch
