"""Two more ways to write down who waits for whom. The third is minivllm/flights.py: `ReleaseAfterPrefill`.

All three keep the same promise: of requests with one input the first computes the prompt, the others wait until that
is done, and a leader that is lost hands over to exactly one of them. They differ in what they remember.

    ActiveAndDraining    a flight stays until its last request has ended, and has a phase
    OptionalLeader       a flight stays until its last request has ended, and may be without a leader
    ReleaseAfterPrefill  a flight is gone when it is released: it has no state, it exists or it does not
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TypeVar

from minivllm.flights import Key, NoFlights
from minivllm.request import Request, UnknownRequestError
from minivllm.stats import Counters


class Phase(enum.Enum):
    ACTIVE = "active"
    """The leader computes the prompt."""
    DRAINING = "draining"
    """The prompt is computed, and some requests have not ended."""


@dataclass
class PhasedFlight:
    phase: Phase
    leader: str
    waiting: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    """Everybody who has not ended: the leader, those who wait, those who were released."""


class ActiveAndDraining(NoFlights):
    """Whoever comes to a draining flight computes at once: its pages are published already."""

    def __init__(self, counters: Counters) -> None:
        super().__init__(counters)
        self.flights: dict[Key, PhasedFlight] = {}

    def arrive(self, request: Request) -> bool:
        name, key = request.request_id, _key_of(request)
        flight = self.flights.get(key)
        if flight is None:
            self.flights[key] = PhasedFlight(Phase.ACTIVE, leader=name, members={name})
            return True
        flight.members.add(name)
        if self._must_wait(flight):
            flight.waiting.append(name)
            return False
        return True

    def prompt_computed(self, request: Request) -> list[str]:
        flight = _flight_with(self.flights, request.request_id)
        leads = flight.phase is Phase.ACTIVE and flight.leader == request.request_id
        return self._drain(flight) if leads else []

    def ended(self, request_id: str, completed: bool) -> list[str]:
        flight = _flight_with(self.flights, request_id)
        flight.members.remove(request_id)
        if request_id in flight.waiting:
            flight.waiting.remove(request_id)
            return []
        freed: list[str] = []
        if flight.phase is Phase.ACTIVE and flight.leader == request_id:
            freed = self._drain(flight) if completed or not flight.waiting else self._hand_over(flight)
        _forget_empty(self.flights)
        return freed

    def _must_wait(self, flight: PhasedFlight) -> bool:
        return flight.phase is Phase.ACTIVE

    def _drain(self, flight: PhasedFlight) -> list[str]:
        flight.phase = Phase.DRAINING
        freed, flight.waiting = flight.waiting, []
        return freed

    def _hand_over(self, flight: PhasedFlight) -> list[str]:
        flight.leader = flight.waiting.pop(0)
        return [flight.leader]


@dataclass
class LedFlight:
    leader: str | None
    waiting: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)


AnyFlight = TypeVar("AnyFlight", PhasedFlight, LedFlight)


class OptionalLeader(NoFlights):
    """Whoever comes to a flight without a leader leads it again."""

    def __init__(self, counters: Counters) -> None:
        super().__init__(counters)
        self.flights: dict[Key, LedFlight] = {}

    def arrive(self, request: Request) -> bool:
        name = request.request_id
        flight = self.flights.setdefault(_key_of(request), LedFlight(leader=None))
        flight.members.add(name)
        if flight.leader is not None:
            flight.waiting.append(name)
            return False
        flight.leader = name
        return True

    def prompt_computed(self, request: Request) -> list[str]:
        flight = _flight_with(self.flights, request.request_id)
        return self._release(flight) if flight.leader == request.request_id else []

    def ended(self, request_id: str, completed: bool) -> list[str]:
        flight = _flight_with(self.flights, request_id)
        flight.members.remove(request_id)
        if request_id in flight.waiting:
            flight.waiting.remove(request_id)
            return []
        freed: list[str] = []
        if flight.leader == request_id:
            freed = self._release(flight) if completed or not flight.waiting else self._hand_over(flight)
        _forget_empty(self.flights)
        return freed

    def _release(self, flight: LedFlight) -> list[str]:
        flight.leader = None
        freed, flight.waiting = flight.waiting, []
        return freed

    def _hand_over(self, flight: LedFlight) -> list[str]:
        flight.leader = flight.waiting.pop(0)
        return [flight.leader]


class JoinsAnyFlight(ActiveAndDraining):
    """One condition forgotten: whoever comes joins the flight that is there, in whatever phase."""

    def _must_wait(self, flight: PhasedFlight) -> bool:
        return True


class NobodyTakesOver(OptionalLeader):
    """One case forgotten: a leader that fails leaves its place empty."""

    def _hand_over(self, flight: LedFlight) -> list[str]:
        flight.leader = None
        return []


def _key_of(request: Request) -> Key:
    return request.cache_salt, tuple(request.prompt_token_ids)


def _flight_with(flights: dict[Key, AnyFlight], request_id: str) -> AnyFlight:
    for flight in flights.values():
        if request_id in flight.members:
            return flight
    raise UnknownRequestError(f"request {request_id!r} is in no flight")


def _forget_empty(flights: dict[Key, AnyFlight]) -> None:
    for key in [key for key, flight in flights.items() if not flight.members]:
        del flights[key]
