"""One measurement as it was planned, and each request as it was sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labbook import prompts
from labbook.answer import Answer
from labbook.errors import UsageError
from labbook.repeats import repeats_for

DEFAULT_PREFIX_WORDS = 600
DEFAULT_QUESTIONS = 3
DEFAULT_COMPETITORS = 8
DEFAULT_ANSWER_TOKENS = 8
MOST_COMPETITORS = 256
DEFAULT_MOST_S = 600.0
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
    repeats: int | None = None  # groups of requests; None: as many as are needed
    competitors: int = DEFAULT_COMPETITORS  # of the eviction experiment
    answer_tokens: int = DEFAULT_ANSWER_TOKENS  # most tokens of an answer; what is judged is the time to the first
    most_s: float = DEFAULT_MOST_S  # no group is added that would not end within this time

    def __post_init__(self) -> None:
        if self.prefix_words < 1:
            raise UsageError(f"prefix words is {self.prefix_words}: at least 1 is needed")
        if self.questions < 1:
            raise UsageError(f"questions is {self.questions}: at least 1 warm request is needed")
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise UsageError(f"timeout is {self.timeout_s} s: a positive number of seconds is needed")
        if self.timeout_s > MAX_TIMEOUT_S:
            raise UsageError(f"timeout is {self.timeout_s:g} s: at most a day, {MAX_TIMEOUT_S:g} s")
        repeats_for(self.repeats)
        if not 1 <= self.competitors <= MOST_COMPETITORS:
            raise UsageError(f"competitors is {self.competitors}: give 1 to {MOST_COMPETITORS}")
        if self.answer_tokens < 1:
            raise UsageError(f"answer tokens is {self.answer_tokens}: at least 1 is needed")
        if not self.most_s > 0:
            raise UsageError(f"the time to repeat in is {self.most_s} s: a positive number of seconds is needed")
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
    """One request of the measurement and what became of it. Groups count from 1."""

    phase: str
    answer: Answer | None
    error: str | None
    body: bytes
    group: int = 1


def queried_tokens(sent: Sequence[Sent]) -> int | None:
    """The prompt tokens of these requests; None when one of them failed or did not tell."""
    counts = [one.answer.prompt_tokens if one.answer else None for one in sent]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
