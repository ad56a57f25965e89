"""What each coordinator can write down about a handful of requests with one input, and what of it contradicts itself.

A state is made of plain values, read from the coordinator's own fields. `every_state` fills those fields in all ways;
a coordinator that can write down fewer impossible states has fewer ways to go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Any, NamedTuple, Protocol

from labs.kit.coordinators import ActiveAndDraining, OptionalLeader, Phase
from minivllm.flights import NoFlights, ReleaseAfterPrefill, ReleaseOnFinish
from minivllm.stats import Counters

Ids = frozenset[str]
NOBODY: Ids = frozenset()

UNWOKEN = "waits, and nobody leads"
GONE_LEADER = "led by a request that has ended"
EMPTY = "kept, with nobody in it"
TWO_ROLES = "one request in two roles"
KINDS = (UNWOKEN, GONE_LEADER, EMPTY, TWO_ROLES)


class State(Protocol):
    def contradictions(self) -> list[str]:
        """Which of KINDS this state is; none for one that makes sense."""
        ...


class PhasedState(NamedTuple):
    """`phase` None: there is no flight."""

    phase: Phase | None = None
    leader: str = ""
    waiting: Ids = NOBODY
    members: Ids = NOBODY

    def contradictions(self) -> list[str]:
        if self.phase is None:
            return []
        is_active = self.phase is Phase.ACTIVE
        return _named(
            (UNWOKEN, bool(self.waiting) and not is_active),
            (GONE_LEADER, is_active and self.leader not in self.members),
            (EMPTY, not self.members),
            (TWO_ROLES, (is_active and self.leader in self.waiting) or not self.waiting <= self.members),
        )


class LedState(NamedTuple):
    has_flight: bool = False
    leader: str | None = None
    waiting: Ids = NOBODY
    members: Ids = NOBODY

    def contradictions(self) -> list[str]:
        if not self.has_flight:
            return []
        return _named(
            (UNWOKEN, bool(self.waiting) and self.leader is None),
            (GONE_LEADER, self.leader is not None and self.leader not in self.members),
            (EMPTY, not self.members),
            (TWO_ROLES, self.leader in self.waiting or not self.waiting <= self.members),
        )


class ReleasedState(NamedTuple):
    """No flight is `leader` None, and then nobody can follow. A request is known by its role and by nothing else."""

    leader: str | None = None
    followers: Ids = NOBODY
    released: Ids = NOBODY

    def contradictions(self) -> list[str]:
        leading = NOBODY if self.leader is None else frozenset({self.leader})
        return _named((TWO_ROLES, bool(leading & self.followers or (leading | self.followers) & self.released)))


@dataclass(frozen=True)
class Design:
    """A way to write flights down: how to make one, read it, and fill its fields in every way."""

    name: str
    make: Callable[[Counters], NoFlights]
    read: Callable[[Any], State]
    every_state: Callable[[Sequence[str]], Iterator[State]]


def _read_phased(flights: ActiveAndDraining) -> PhasedState:
    for flight in flights.flights.values():
        return PhasedState(flight.phase, flight.leader, frozenset(flight.waiting), frozenset(flight.members))
    return PhasedState()


def _read_led(flights: OptionalLeader) -> LedState:
    for flight in flights.flights.values():
        return LedState(True, flight.leader, frozenset(flight.waiting), frozenset(flight.members))
    return LedState()


def _read_released(flights: ReleaseOnFinish) -> ReleasedState:
    """Of the two indexes of a flight, one is enough: the other is checked against it."""
    released = frozenset(flights._released)
    for flight in flights._flight_of_key.values():
        assert flights._flight_of_id == dict.fromkeys([flight.leader, *flight.followers], flight)
        return ReleasedState(flight.leader, frozenset(flight.followers), released)
    assert not flights._flight_of_id
    return ReleasedState(released=released)


def _every_phased(ids: Sequence[str]) -> Iterator[State]:
    yield PhasedState()
    for phase, leader, waiting, members in product(Phase, ids, _subsets(ids), _subsets(ids)):
        yield PhasedState(phase, leader, waiting, members)


def _every_led(ids: Sequence[str]) -> Iterator[State]:
    yield LedState()
    for leader, waiting, members in product((None, *ids), _subsets(ids), _subsets(ids)):
        yield LedState(True, leader, waiting, members)


def _every_released(ids: Sequence[str]) -> Iterator[State]:
    for released in _subsets(ids):
        yield ReleasedState(released=released)
        for leader, followers in product(ids, _subsets(ids)):
            yield ReleasedState(leader, followers, released)


DESIGNS = (
    Design("active and draining", ActiveAndDraining, _read_phased, _every_phased),
    Design("an optional leader", OptionalLeader, _read_led, _every_led),
    Design("no state (flights.py)", ReleaseAfterPrefill, _read_released, _every_released),
)


def with_class(design: Design, flights: type[NoFlights]) -> Design:
    """The same fields, filled by another class."""
    return replace(design, name=flights.__name__, make=flights)


def _subsets(ids: Sequence[str]) -> list[Ids]:
    return [frozenset(some) for some in chain.from_iterable(combinations(ids, size) for size in range(len(ids) + 1))]


def _named(*findings: tuple[str, bool]) -> list[str]:
    return [kind for kind, is_so in findings if is_so]
