"""Which cached block goes next. The classes fit the engine's `Eviction` protocol (minivllm/protocols.py).

Whoever owns the blocks calls `touch` for every block that a request found, `remove` while the request holds it, and
`add` when it is released, deepest first. A victim never has a cached child: a block is only reachable through those
before it, so what is left must be prefixes.

    request     [ a | b | c ]                   added c, b, a
    victims     lru        c, b, a              and a before the blocks of later requests
                lfu        whatever was used least, the least recent of those
                fifo       the oldest block that nothing hangs on
                length     whatever was used least, the deepest of those
                scan       what was used once before what came back
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from minivllm.cache.eviction import TailFirstLRU

ParentOf = Callable[[int], int | None]


class Eviction(Protocol):
    """The engine's protocol, and the news of reuse that policies other than LRU live on."""

    def add(self, page_id: int) -> None:
        """Nobody holds the page any more: it is a candidate. Pages of one request arrive deepest first."""
        ...

    def remove(self, page_id: int) -> None:
        """A request holds the page again. What is known of its past stays."""
        ...

    def touch(self, page_id: int) -> None:
        """A request found the page."""
        ...

    def forget(self, page_id: int) -> None:
        """The page is gone without having been a victim."""
        ...

    def pop_victim(self) -> int:
        """The page to evict next, no longer a candidate and its past forgotten."""
        ...

    def __len__(self) -> int:
        """How many pages are candidates."""
        ...


class LRU(TailFirstLRU):
    """The engine's own: least recently used first, the deepest first within one request. O(1)."""

    def touch(self, page_id: int) -> None:
        """Recency comes from `add` alone."""

    def forget(self, page_id: int) -> None:
        """A page that is no candidate has left no trace here."""


class HeadFirstLRU:
    """LRU as it is often written: one time for all blocks of a request, and so the first block goes first. O(log n).

    Breaks the promise of the protocol, to show what that costs: the rest of the request stays, and nobody finds it.
    """

    def __init__(self, parent_of: ParentOf) -> None:
        self._parent_of = parent_of
        self._time_of: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self._time, self._added_last = 0, -1

    def __len__(self) -> int:
        return len(self._time_of)

    def add(self, page_id: int) -> None:
        is_same_request = self._added_last in self._time_of and self._parent_of(self._added_last) == page_id
        self._time += 0 if is_same_request else 1
        self._added_last, self._time_of[page_id] = page_id, self._time
        heapq.heappush(self._heap, (self._time, page_id))  # ids grow with time: the head has the smallest
        if len(self._heap) > 2 * len(self) + 64:
            self._heap = [(time, page_id) for page_id, time in self._time_of.items()]
            heapq.heapify(self._heap)

    def remove(self, page_id: int) -> None:
        del self._time_of[page_id]

    def touch(self, page_id: int) -> None:
        """Recency comes from `add` alone."""

    def forget(self, page_id: int) -> None:
        """A page that is no candidate has left no trace here."""

    def pop_victim(self) -> int:
        while True:
            time, page_id = heapq.heappop(self._heap)
            if self._time_of.get(page_id) == time:
                del self._time_of[page_id]
                return page_id


class SegmentedLRU:
    """Scan-resistant: what was used once goes before anything that came back. O(1).

    Two LRU queues, probation and protected. A block enters the second when it is found again. When a victim is wanted
    and the second holds more than `protected_share` of the candidates, its least recent go back to the end of the first
    (segmented LRU: Karedla and others, "Caching strategies to improve disk system performance", 1994). A long document
    that is read once flushes probation only.

    Tail-first, as LRU: a block comes back no less often and is released no earlier than what hangs on it.
    """

    def __init__(self, protected_share: float = 0.8) -> None:
        self.protected_share = protected_share
        self._probation: dict[int, None] = {}
        self._protected: dict[int, None] = {}
        self._came_back: set[int] = set()

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def add(self, page_id: int) -> None:
        queue = self._protected if page_id in self._came_back else self._probation
        queue[page_id] = None

    def remove(self, page_id: int) -> None:
        queue = self._protected if page_id in self._protected else self._probation
        del queue[page_id]

    def touch(self, page_id: int) -> None:
        self._came_back.add(page_id)

    def forget(self, page_id: int) -> None:
        self._came_back.discard(page_id)

    def pop_victim(self) -> int:
        while len(self._protected) > self.protected_share * len(self):
            demoted = next(iter(self._protected))
            del self._protected[demoted]
            self._came_back.discard(demoted)
            self._probation[demoted] = None
        queue = self._probation or self._protected
        page_id = next(iter(queue))
        del queue[page_id]
        self.forget(page_id)
        return page_id


@dataclass(slots=True)
class Past:
    """What a policy may know of one page. Times are counted in calls of `add`."""

    born: int
    depth: int
    uses: int = 1
    released: int = 0
    parent: int | None = None
    num_candidate_children: int = 0
    is_candidate: bool = False


Key = Callable[[Past], Any]


def fewest_uses(past: Past) -> int:
    """LFU: least frequently used first."""
    return past.uses


def oldest(past: Past) -> int:
    """FIFO: first in, first out, however often it was used."""
    return past.born


def fewest_uses_deepest(past: Past) -> tuple[int, int]:
    """Length-aware, as in Mooncake's comparison (Qin and others, FAST '25): later blocks of long requests first."""
    return past.uses, -past.depth


class LeavesByKey:
    """Of the candidates that nothing hangs on, the one with the smallest key; at equal keys the least recent. O(log n).

    Works for any key, because only leaves are in the heap. Entries that have become wrong stay there until they are
    popped or outnumber the others.
    """

    def __init__(self, key: Key, parent_of: ParentOf) -> None:
        self._key = key
        self._parent_of = parent_of
        self._past: dict[int, Past] = {}
        self._heap: list[tuple[Any, int, int]] = []
        self._clock = itertools.count(1)
        self._num_candidates = 0

    def __len__(self) -> int:
        return self._num_candidates

    def add(self, page_id: int) -> None:
        past = self._past_of(page_id)
        past.released, past.is_candidate = next(self._clock), True
        self._num_candidates += 1
        past.parent = self._parent_of(page_id)
        if past.parent is not None:
            self._past_of(past.parent).num_candidate_children += 1
        self._offer(page_id, past)

    def remove(self, page_id: int) -> None:
        past = self._past[page_id]
        past.is_candidate = False
        self._num_candidates -= 1
        self._leave_parent(past)

    def touch(self, page_id: int) -> None:
        self._past_of(page_id).uses += 1

    def forget(self, page_id: int) -> None:
        self._past.pop(page_id, None)

    def pop_victim(self) -> int:
        while True:
            _, released, page_id = heapq.heappop(self._heap)
            if self._is_current(released, page_id):
                self.remove(page_id)
                self.forget(page_id)
                return page_id

    def _past_of(self, page_id: int) -> Past:
        past = self._past.get(page_id)
        if past is not None:
            return past
        unknown = [page_id]
        while (parent := self._parent_of(unknown[-1])) is not None and parent not in self._past:
            unknown.append(parent)
        depth = 0 if parent is None else self._past[parent].depth + 1
        for page in reversed(unknown):
            self._past[page] = Past(next(self._clock), depth)
            depth += 1
        return self._past[page_id]

    def _leave_parent(self, past: Past) -> None:
        parent = None if past.parent is None else self._past.get(past.parent)
        if past.parent is None or parent is None:
            return
        parent.num_candidate_children -= 1
        self._offer(past.parent, parent)

    def _offer(self, page_id: int, past: Past) -> None:
        if not past.is_candidate or past.num_candidate_children:
            return
        heapq.heappush(self._heap, (self._key(past), past.released, page_id))
        if len(self._heap) > 2 * self._num_candidates + 64:
            self._heap = [entry for entry in set(self._heap) if self._is_current(*entry[1:])]
            heapq.heapify(self._heap)

    def _is_current(self, released: int, page_id: int) -> bool:
        past = self._past.get(page_id)
        is_leaf = past is not None and past.is_candidate and not past.num_candidate_children
        return is_leaf and past is not None and past.released == released


POLICIES: dict[str, Callable[[ParentOf], Eviction]] = {
    "lru": lambda parent_of: LRU(),
    "lfu": lambda parent_of: LeavesByKey(fewest_uses, parent_of),
    "fifo": lambda parent_of: LeavesByKey(oldest, parent_of),
    "length": lambda parent_of: LeavesByKey(fewest_uses_deepest, parent_of),
    "scan": lambda parent_of: SegmentedLRU(),
    "lru-head-first": HeadFirstLRU,
}
"""Each builds a policy for an index, whose `parent_of` says what a page hangs on."""
