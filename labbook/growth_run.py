"""A growth measurement as it was seen: pairs of different lengths, in the order of sending."""

from __future__ import annotations

from dataclasses import dataclass

from labbook.answer import Answer
from labbook.counters import CounterWatch
from labbook.grouped_run import TO_FIRST_TOKEN, TO_THE_END
from labbook.run import Plan, Sent


@dataclass(frozen=True)
class GrowthRun:
    """`words` holds the length of each pair; the group of a request is the number of its pair, from 1."""

    plan: Plan
    model: str
    base_url: str
    warm_up: Answer
    words: tuple[int, ...]
    sent: tuple[Sent, ...]
    watch: CounterWatch

    @property
    def failures(self) -> list[str]:
        return [sent.error for sent in self.sent if sent.error is not None]

    @property
    def timed(self) -> str:
        answers = [sent.answer for sent in self.sent if sent.answer]
        return TO_FIRST_TOKEN if all(answer.ttft_s is not None for answer in answers) else TO_THE_END

    @property
    def per(self) -> str:
        """What lengths are counted in: tokens where every answer tells them, else the words of the prefix."""
        answers = [sent.answer for sent in self.sent if sent.answer]
        return "token" if all(answer.prompt_tokens is not None for answer in answers) else "word"

    def seconds(self, answer: Answer) -> float:
        return (answer.ttft_s or 0.0) if self.timed == TO_FIRST_TOKEN else answer.total_s

    def answers(self, phase: str) -> list[Answer]:
        return [sent.answer for sent in self.sent if sent.phase == phase and sent.answer]

    def pairs(self) -> list[tuple[int, Answer, Answer]]:
        """Words, cold and warm answer of every pair in which both succeeded."""
        by_pair = {(sent.group, sent.phase): sent.answer for sent in self.sent if sent.answer}
        return [
            (words, by_pair[number, "cold"], by_pair[number, "warm"])
            for number, words in enumerate(self.words, start=1)
            if {(number, "cold"), (number, "warm")} <= by_pair.keys()
        ]

    def length(self, words: int, answer: Answer) -> float:
        """In the unit of `per`."""
        return float(words if answer.prompt_tokens is None or self.per == "word" else answer.prompt_tokens)
