"""What every kind of traffic is made with: texts and chances that depend on the seed alone, and a common clock."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
import random
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

from minivllm.policies.access import Access

Tokens = tuple[int, ...]

VOCABULARY = 2**16
ANSWER_TOKENS_PER_S = 50.0
"""How fast an answer comes: the next turn of a conversation cannot arrive before the last answer is there."""


class TrafficError(ValueError):
    """A workload that cannot be made; the message names the size and the value."""


@dataclass(frozen=True)
class Workload:
    """Traffic of one kind. Iterating makes its requests one by one, in order of arrival; each iteration is the same.

    Fields named `*_tokens` are lengths (exact, or the mean where the docstring says so), `*_s` are seconds, the others
    are numbers of things. Equal fields give equal requests on every machine and every version of Python.
    """

    name: ClassVar[str]

    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, bool):
                self._check(field.name, value, type(value) is bool, "True or False")
            elif isinstance(field.default, float):
                is_number = type(value) in (int, float) and math.isfinite(value) and value > 0
                self._check(field.name, value, is_number, "a number above 0")
            elif field.name == "seed":
                self._check(field.name, value, type(value) is int, "a whole number")
            else:
                self._check(field.name, value, type(value) is int and value >= 1, "a whole number from 1")

    def __iter__(self) -> Iterator[Access]:
        raise NotImplementedError

    def text(self, what: str, num_tokens: int) -> Tokens:
        """The text called `what`: the same each time it is asked for, and nothing like any other."""
        digest = hashlib.shake_256(self._called(what)).digest(2 * num_tokens)
        return struct.unpack(f"<{num_tokens}H", digest)

    def chance(self, what: str) -> Chance:
        return Chance(self._called(what))

    def starts(self, num: int, mean_gap_s: float) -> Iterator[tuple[int, float]]:
        """Numbers and start times of `num` things that begin independently of each other (a Poisson process)."""
        chance = self.chance("starts")
        now_s = 0.0
        for number in range(num):
            now_s += chance.wait_s(mean_gap_s)
            yield number, now_s

    def _called(self, what: str) -> bytes:
        return f"{self.name}/{self.seed}/{what}".encode()

    def _check(self, field: str, value: object, is_right: bool, right: str) -> None:
        if not is_right:
            raise TrafficError(f"{field} of {self.name} is {value!r:.80}: give {right}")


class Chance:
    """Draws from a seed, by `random.Random.random` alone: the one method whose numbers Python promises to keep."""

    def __init__(self, seed: bytes) -> None:
        self._random = random.Random(int.from_bytes(hashlib.sha256(seed).digest()))

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def about(self, mean: int) -> int:
        """A length from half to one and a half times the mean, never 0."""
        return max(1, mean // 2 + self.below(mean + 1))

    def wait_s(self, mean_s: float) -> float:
        """Seconds until the next of events that come independently of each other."""
        return -mean_s * math.log(1.0 - self._random.random())

    def shuffled(self, things: Iterable[int]) -> list[int]:
        return sorted(things, key=lambda _: self._random.random())

    def popular(self, num: int) -> int:
        """One of `num` things, number 0 most often: the k-th is asked for 1/k times as often (Zipf)."""
        shares = itertools.accumulate(1 / rank for rank in range(1, num + 1))
        drawn = self._random.random() * sum(1 / rank for rank in range(1, num + 1))
        return next((number for number, share in enumerate(shares) if drawn < share), num - 1)


def by_arrival(sessions: Iterable[tuple[float, Iterator[Access]]]) -> Iterator[Access]:
    """The requests of all sessions by arrival. Sessions come ordered by start; only those under way are held."""
    waiting: list[tuple[float, int, Access, Iterator[Access]]] = []
    order = itertools.count()  # requests of the same moment keep the order of their sessions

    def hold(session: Iterator[Access]) -> None:
        access = next(session, None)
        if access is not None:
            heapq.heappush(waiting, (access.arrived_s, next(order), access, session))

    def take() -> Access:
        *_, access, session = heapq.heappop(waiting)
        hold(session)
        return access

    for start_s, session in sessions:
        while waiting and waiting[0][0] < start_s:
            yield take()
        hold(session)
    while waiting:
        yield take()


def request(prompt: Tokens, answer: Tokens, arrived_s: float, session: str) -> Access:
    """An access to whole tokens, with the answer that the traffic knows."""
    return Access(prompt, len(prompt), answer, len(answer), arrived_s, session)
