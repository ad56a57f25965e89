"""What a group of requests is in each experiment: who is sent in which order, and whose times are judged by whose.

cold       a fresh nonce, then the shared text: nothing but the template's head can be reused
warm       the same nonce and text, and another question (in `repeat` the same bytes again)
control    a changed prefix before the same text: what it reuses is the template's head
competing  a fresh nonce and the same text, to fill the cache with something else
again      the first prefix once more, after the competitors
short      a fresh nonce and a few words: what a request takes when there is hardly anything to compute
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from labbook import prompts
from labbook.errors import UsageError
from labbook.prompts import Message
from labbook.run import Plan

NUM_SHORT = 5
SHORT_WORDS = 5


@dataclass(frozen=True)
class Nonces:
    """The first words of a group's prompts."""

    cold: str
    control: str
    competing: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, str | list[str]]:
        told: dict[str, str | list[str]] = {"cold": self.cold, "control": self.control}
        return told | ({"competing": list(self.competing)} if self.competing else {})


@dataclass(frozen=True)
class Step:
    phase: str
    messages: list[Message]


@dataclass(frozen=True)
class Experiment:
    """The times of phase `judged` are compared with those of the phases `without` reuse.

    `changed` is the phase of changed prefixes, which show what any prompt reuses: the template's head. `needs` is a
    phase that must have been reused, else the verdict would mean nothing; `question` is what it answers.
    """

    name: str
    judged: str
    without: tuple[str, ...]
    changed: str
    needs: str | None
    question: str
    nonces: Callable[[Plan], Nonces]
    steps: Callable[[Plan, Nonces, int], list[Step]]

    @property
    def phases(self) -> tuple[str, ...]:
        """All of them, the cold one first."""
        return tuple(dict.fromkeys(("cold", "warm", *self.without, self.judged)))


def _asking(plan: Plan, nonce: str, number: int = 0) -> list[Message]:
    return prompts.conversation(nonce, plan.shared_text, prompts.question(number, plan.seed))


def _two_nonces(plan: Plan) -> Nonces:
    cold, control = prompts.fresh_nonces(2)
    return Nonces(cold, control)


def _one_letter_apart(plan: Plan) -> Nonces:
    nonce = prompts.fresh_nonces(1)[0]
    return Nonces(nonce, prompts.with_another_first_letter(nonce))


def _competing_nonces(plan: Plan) -> Nonces:
    nonce, control, *competing = prompts.fresh_nonces(2 + plan.competitors)
    return Nonces(nonce, control, tuple(competing))


def _pair_steps(plan: Plan, nonces: Nonces, group: int) -> list[Step]:
    warm = [Step("warm", _asking(plan, nonces.cold, number)) for number in range(1, plan.questions + 1)]
    return _with_control(plan, nonces, group, warm)


def _repeat_steps(plan: Plan, nonces: Nonces, group: int) -> list[Step]:
    return _with_control(plan, nonces, group, [Step("warm", _asking(plan, nonces.cold))] * plan.questions)


def _with_control(plan: Plan, nonces: Nonces, group: int, warm: list[Step]) -> list[Step]:
    """The control before or after the others, never among them: a server with one slot would lose the prefix."""
    control, others = [Step("control", _asking(plan, nonces.control))], [Step("cold", _asking(plan, nonces.cold))]
    others += warm
    return control + others if is_control_first(group, plan.seed) else others + control


def is_control_first(group: int, seed: int) -> bool:
    """The first group ends with its control; from there on each two groups have both orders, in random order."""
    block, place = divmod(group - 1, 2)
    order = [False, True]
    if block:
        random.Random(f"order {seed} {block}").shuffle(order)
    return order[place]


def _control_steps(plan: Plan, nonces: Nonces, group: int) -> list[Step]:
    warm = [Step("warm", _asking(plan, nonces.cold, number)) for number in range(1, plan.questions + 1)]
    return [Step("cold", _asking(plan, nonces.cold)), *warm, Step("control", _asking(plan, nonces.control))]


def _eviction_steps(plan: Plan, nonces: Nonces, group: int) -> list[Step]:
    competing = [Step("competing", _asking(plan, nonce)) for nonce in nonces.competing]
    return [
        Step("cold", _asking(plan, nonces.cold)),
        Step("warm", _asking(plan, nonces.cold, 1)),
        *competing,
        Step("again", _asking(plan, nonces.cold, 2)),
    ]


def short_steps(plan: Plan) -> list[Step]:
    """Sent where times are equal: only if these are faster, equal times mean that everything was computed."""
    text = " ".join(plan.shared_text.split()[:SHORT_WORDS])
    nonces = prompts.fresh_nonces(NUM_SHORT)
    return [
        Step("short", prompts.conversation(nonce, text, prompts.question(number, plan.seed)))
        for number, nonce in enumerate(nonces)
    ]


COLD_WARM = Experiment(
    "cold_warm",
    "warm",
    ("cold", "control"),
    "control",
    None,
    "is a prefix reused by the next question about it?",
    _two_nonces,
    _pair_steps,
)
REPEAT = Experiment(
    "repeat",
    "warm",
    ("cold", "control"),
    "control",
    None,
    "is a prompt reused when the same bytes come again?",
    _two_nonces,
    _repeat_steps,
)
CONTROL = Experiment(
    "control",
    "control",
    ("cold",),
    "control",
    "warm",
    "is anything reused behind one changed letter at the start? (not_reused is right)",
    _one_letter_apart,
    _control_steps,
)
EVICTION = Experiment(
    "eviction",
    "again",
    ("cold", "competing"),
    "competing",
    "warm",
    "is the prefix still there after other prompts came in between?",
    _competing_nonces,
    _eviction_steps,
)
IN_GROUPS = {"pair": COLD_WARM, "repeat": REPEAT, "control": CONTROL, "eviction": EVICTION}


def experiment_named(name: str) -> Experiment:
    """By the name that the command line gives it, or by its record's. Raises UsageError."""
    for called, experiment in IN_GROUPS.items():
        if name in (called, experiment.name):
            return experiment
    raise UsageError(f"there is no experiment {name!r} in groups: choose one of {', '.join(IN_GROUPS)}")
