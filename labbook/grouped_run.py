"""A measurement in groups of requests as it was seen, before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labbook.answer import Answer
from labbook.counters import CounterWatch
from labbook.experiments import Experiment, Nonces
from labbook.repeats import Repeats
from labbook.run import Plan, Sent
from labbook.statistics import TimedGroup

TO_FIRST_TOKEN, TO_THE_END = "time to first token", "time to the whole answer"


@dataclass(frozen=True)
class Run:
    """Every request in the order of sending. `nonces` are those of the groups, the first group first."""

    plan: Plan
    experiment: Experiment
    repeats: Repeats
    model: str
    base_url: str
    warm_up: Answer
    warm_up_nonce: str
    nonces: tuple[Nonces, ...]
    sent: tuple[Sent, ...]
    shared_tokens: int | None
    shared_tokens_source: str
    watch: CounterWatch

    @property
    def cold(self) -> Answer:
        """The first cold answer: a measurement without one is no measurement."""
        return self.answers("cold")[0]

    def answers(self, phase: str) -> list[Answer]:
        return [sent.answer for sent in self.sent if sent.phase == phase and sent.answer]

    @property
    def failures(self) -> list[str]:
        return [sent.error for sent in self.sent if sent.error is not None]

    @property
    def shared_share(self) -> float:
        """The part of the prompt that could be reused, by tokens where they are told, else by characters."""
        if self.shared_tokens is not None and self.cold.prompt_tokens:
            return self.shared_tokens / self.cold.prompt_tokens
        steps = self.experiment.steps(self.plan, self.nonces[0], 1)
        lengths = [len(message["content"]) for message in steps[0].messages]
        return lengths[0] / sum(lengths)

    @property
    def timed(self) -> str:
        """What is compared: the first token where every answer shows one, else the whole answer."""
        answers = [sent.answer for sent in self.sent if sent.answer]
        return TO_FIRST_TOKEN if all(answer.ttft_s is not None for answer in answers) else TO_THE_END

    def seconds(self, phase: str, group: int | None = None) -> tuple[float, ...]:
        """The times of a phase, in all groups or in one."""
        is_first = self.timed == TO_FIRST_TOKEN
        answers = [
            sent.answer for sent in self.sent if sent.phase == phase and sent.answer and group in (None, sent.group)
        ]
        return tuple((answer.ttft_s or 0.0) if is_first else answer.total_s for answer in answers)

    def timed_groups(self, judged: str, without: Sequence[str]) -> list[TimedGroup]:
        """The groups in which a judged request and one without reuse succeeded."""
        groups = []
        for group in range(1, len(self.nonces) + 1):
            without_s = tuple(seconds for phase in without for seconds in self.seconds(phase, group))
            judged_s = self.seconds(judged, group)
            if judged_s and without_s:
                groups.append(TimedGroup(judged_s, without_s))
        return groups
