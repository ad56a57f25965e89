"""Who waits for whom: single flight. Coordination is about prompt computation; every request samples its own answer.

The key of a flight is the salt and the token ids, and nothing else. The salt, because pages of different salts must
never meet. The token ids, because they decide the keys and values. Not the sampling settings, not max_tokens, not the
stop strings: they change the answer and not the KV, and answers are never shared.

    off                    nobody waits
    release_on_finish      requests with the same input wait until their leader has ended
    release_after_prefill  ... until their leader's prompt is computed
    page                   a request waits, one page at a time, for whoever computes that page in this step
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from minivllm.protocols import Flights
from minivllm.request import Request, UnknownRequestError
from minivllm.stats import Counters

Key = tuple[str | None, tuple[int, ...]]


class NoFlights:
    """Nobody waits. The others are built on it: each overrides what it decides."""

    goes_page_by_page = False

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def arrive(self, request: Request) -> bool:
        return True

    def prompt_computed(self, request: Request) -> list[str]:
        return []

    def ended(self, request_id: str, completed: bool) -> list[str]:
        return []

    def begin_step(self) -> None:
        return None

    def claim(self, request: Request, start: int, end: int) -> int:
        return end

    def must_publish(self, request: Request) -> int:
        return 0


@dataclass
class Flight:
    """Requests with one input: the leader computes, the followers wait."""

    key: Key
    leader: str
    followers: list[str] = field(default_factory=list)


class ReleaseOnFinish(NoFlights):
    """Exact-input single flight: followers are released when their leader has ended.

    States of a request:   leader or follower of a flight  ->  released  ->  ended (forgotten)

    A flight is gone when it is released, and with it every index of it; of its requests only the ids are remembered
    until they end, so that the end of a request nobody knows is an error. A new identical request then leads anew.
    """

    def __init__(self, counters: Counters) -> None:
        super().__init__(counters)
        self._flight_of_key: dict[Key, Flight] = {}
        self._flight_of_id: dict[str, Flight] = {}
        self._released: set[str] = set()

    def arrive(self, request: Request) -> bool:
        key = (request.cache_salt, tuple(request.prompt_token_ids))
        flight = self._flight_of_key.get(key)
        if flight is None:
            self._flight_of_key[key] = self._flight_of_id[request.request_id] = Flight(key, request.request_id)
            return True
        self._counters.flights_opened += not flight.followers
        self._counters.flight_followers += 1
        flight.followers.append(request.request_id)
        self._flight_of_id[request.request_id] = flight
        return False

    def ended(self, request_id: str, completed: bool) -> list[str]:
        if request_id in self._released:
            self._released.remove(request_id)
            return []
        flight = self._flight_of_id.get(request_id)
        if flight is None:
            raise UnknownRequestError(f"request {request_id!r} is in no flight and was not released from one")
        if request_id != flight.leader:
            flight.followers.remove(request_id)
            del self._flight_of_id[request_id]
            return []
        return self._leader_ended(flight, completed)

    def _leader_ended(self, flight: Flight, completed: bool) -> list[str]:
        """A leader that completed releases everybody; one that did not hands over to exactly one follower."""
        if completed or not flight.followers:
            followers = self._release(flight)
            self._released.remove(flight.leader)
            return followers
        del self._flight_of_id[flight.leader]
        flight.leader = flight.followers.pop(0)
        return [flight.leader]

    def _release(self, flight: Flight) -> list[str]:
        del self._flight_of_key[flight.key]
        for request_id in (flight.leader, *flight.followers):
            del self._flight_of_id[request_id]
            self._released.add(request_id)
        return flight.followers


class ReleaseAfterPrefill(ReleaseOnFinish):
    """Exact-input single flight: followers are released when their leader's prompt is computed and published."""

    def prompt_computed(self, request: Request) -> list[str]:
        flight = self._flight_of_id.get(request.request_id)
        return [] if flight is None else self._release(flight)

    def must_publish(self, request: Request) -> int:
        is_leading = request.request_id in self._flight_of_id and not request.is_prefilling
        return request.num_prompt_tokens if is_leading else 0


class PageFlights(NoFlights):
    """One page at a time. A claim lasts for one step, so nobody can wait for a request that has failed or gone.

        step 1   A computes pages 0..15 of a document, B and C want page 0: they wait
        step 2   pages 0..15 are published; A goes on with 16..31; B and C restore 0..15, want 16, and wait
        step 3   A has only its own question left; B and C restore the rest and compute their own questions

    Whoever is scheduled first in a step computes, so in every step somebody makes progress and no cycle can form. A
    request whose next page nobody computes is never held back.
    """

    goes_page_by_page = True

    def __init__(self, counters: Counters, page_size: int) -> None:
        super().__init__(counters)
        self._page_size = page_size
        self._token_format = struct.Struct(f"<{page_size}q")
        self._owner_of_page: dict[bytes, str] = {}
        self._keys: dict[str, list[bytes]] = {}
        self._leaders: set[str] = set()
        self._followers: set[str] = set()

    def ended(self, request_id: str, completed: bool) -> list[str]:
        self._keys.pop(request_id, None)
        self._leaders.discard(request_id)
        self._followers.discard(request_id)
        return []

    def begin_step(self) -> None:
        self._owner_of_page.clear()

    def claim(self, request: Request, start: int, end: int) -> int:
        keys = self._restorable_keys(request)
        first = start // self._page_size
        for number in range(first, min(len(keys), -(-end // self._page_size))):
            owner = self._owner_of_page.setdefault(keys[number], request.request_id)
            if owner != request.request_id:
                self._count_wait(owner, request.request_id)
                return max(start, number * self._page_size)
        return self._whole_pages(request, start, end)

    def _whole_pages(self, request: Request, start: int, end: int) -> int:
        """A chunk that does not end the prompt ends with a page, if it can fill one: others may wait for it."""
        end_of_page = end // self._page_size * self._page_size
        return end_of_page if end < request.num_prompt_tokens and end - start >= self._page_size else end

    def must_publish(self, request: Request) -> int:
        """All of the prompt that is computed: whoever comes next may need it, and a claim does not outlast the step."""
        return min(request.num_computed_tokens, request.num_prompt_tokens)

    def _restorable_keys(self, request: Request) -> list[bytes]:
        """Keys of the pages worth waiting for: the page of the last prompt token has to be computed anyway."""
        if request.request_id not in self._keys:
            self._keys[request.request_id] = list(self._chain(request))
        return self._keys[request.request_id]

    def _chain(self, request: Request) -> Iterator[bytes]:
        salt = request.cache_salt
        key = b"" if salt is None else b"salt" + salt.encode("utf-8", "surrogatepass")
        for number in range((request.num_prompt_tokens - 1) // self._page_size):
            page = request.token_ids[number * self._page_size : (number + 1) * self._page_size]
            key = hashlib.sha256(hashlib.sha256(key).digest() + self._token_format.pack(*page)).digest()
            yield key

    def _count_wait(self, leader: str, follower: str) -> None:
        self._counters.flights_opened += leader not in self._leaders
        self._counters.flight_followers += follower not in self._followers
        self._leaders.add(leader)
        self._followers.add(follower)


POLICIES: dict[str, Callable[[Counters, int], Flights]] = {
    "off": lambda counters, page_size: NoFlights(counters),
    "release_on_finish": lambda counters, page_size: ReleaseOnFinish(counters),
    "release_after_prefill": lambda counters, page_size: ReleaseAfterPrefill(counters),
    "page": PageFlights,
}
