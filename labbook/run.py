"""One measurement as it was planned, and as it was seen, before anything is concluded from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labbook import prompts
from labbook.answer import Answer
from labbook.counters import CounterWatch
from labbook.errors import UsageError

DEFAULT_PREFIX_WORDS = 600
DEFAULT_QUESTIONS = 3
MAX_TIMEOUT_S = 86_400.0  # a day; a socket takes no endless number


@dataclass(frozen=True)
class Plan:
    """What to measure. With `prefix_text` the shared text is yours, else `prefix_words` synthetic words."""

    model: str | None = None
    prefix_words: int = DEFAULT_PREFIX_WORDS
    prefix_text: str | None = None
    prefix_source: str | None = None
    questions: int = DEFAULT_QUESTIONS
    timeout_s: float = 120.0
    label: str = ""
    engine: str | None = None
    engine_version: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.prefix_words < 1:
            raise UsageError(f"prefix words is {self.prefix_words}: at least 1 is needed")
        if self.questions < 1:
            raise UsageError(f"questions is {self.questions}: at least 1 warm request is needed")
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise UsageError(f"timeout is {self.timeout_s} s: a positive number of seconds is needed")
        if self.timeout_s > MAX_TIMEOUT_S:
            raise UsageError(f"timeout is {self.timeout_s:g} s: at most a day, {MAX_TIMEOUT_S:g} s")
        if self.prefix_text is not None and not self.prefix_text.strip():
            raise UsageError("the prefix text is empty: there is nothing to share")

    @property
    def shared_text(self) -> str:
        return self.prefix_text or prompts.synthetic_text(self.prefix_words, self.seed)

    @property
    def source(self) -> str:
        if self.prefix_text is None:
            return f"synthetic, {self.prefix_words} words, seed {self.seed}"
        return self.prefix_source or "given text"


@dataclass(frozen=True)
class Sent:
    """One request of the measurement and what became of it."""

    phase: str
    answer: Answer | None
    error: str | None
    body: bytes


@dataclass(frozen=True)
class Times:
    timed: str
    cold_s: float
    warm_s: tuple[float, ...]
    control_s: float | None


@dataclass(frozen=True)
class Run:
    """Everything that was seen, before anything is concluded from it."""

    plan: Plan
    model: str
    base_url: str
    nonce: str
    control_nonce: str
    warm_up: Answer
    cold: Answer
    sent: tuple[Sent, ...]
    shared_tokens: int | None
    shared_tokens_source: str
    engine_version: str | None
    dropped_fields: tuple[str, ...]
    watch: CounterWatch

    @property
    def warm(self) -> list[Answer]:
        return [sent.answer for sent in self.sent if sent.phase == "warm" and sent.answer]

    @property
    def control(self) -> Answer | None:
        return next((sent.answer for sent in self.sent if sent.phase == "control"), None)

    @property
    def failures(self) -> list[str]:
        return [sent.error for sent in self.sent if sent.error is not None]

    @property
    def times(self) -> Times:
        """Seconds to the first token where every request has one, else to the whole answer."""
        answers = [sent.answer for sent in self.sent if sent.answer]
        if all(answer.ttft_s is not None for answer in answers):
            return self._times("time to first token", [answer.ttft_s or 0.0 for answer in answers])
        return self._times("time to the whole answer", [answer.total_s for answer in answers])

    def _times(self, timed: str, seconds: list[float]) -> Times:
        num_warm = len(self.warm)
        return Times(timed, seconds[0], tuple(seconds[1 : num_warm + 1]), seconds[-1] if self.control else None)


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
    engine_version: str | None
    dropped_fields: tuple[str, ...]
    watch: CounterWatch


def queried_tokens(sent: Sequence[Sent]) -> int | None:
    """The prompt tokens of these requests; None when one of them failed or did not tell."""
    counts = [one.answer.prompt_tokens if one.answer else None for one in sent]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
