"""Which cached block goes next, told of every use. The engine's own policies are in minivllm/cache/eviction.py.

Whoever owns the blocks calls `touch` for every block that a request found, `remove` while the request holds it, and
`add` when it is released, deepest first. A victim never has a cached child: a block is only reachable through those
before it, so what is left must be prefixes.

    request     [ a | b | c ]                   added c, b, a
    victims     lru        c, b, a              and a before the blocks of later requests
                lfu        whatever was used least, the least recent of those
                fifo       the oldest block that nothing hangs on
                length     whatever was used least, the deepest of those
                scan       what nobody came back for, the newest first (the engine's own)
                segmented  what was used once before what came back
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from minivllm.cache.eviction import ScanResistant, TailFirstLRU
from minivllm.policies.leaves_by_key import LeavesByKey, ParentOf, fewest_uses, fewest_uses_deepest, oldest
from minivllm.policies.segmented_lru import SegmentedLRU
from minivllm.protocols import Eviction as EngineEviction
from minivllm.protocols import PageUse

_NO_USE = PageUse(depth=0, num_restores=0)


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


class FromEngine:
    """A policy of the engine, told at each release what it is told there. O(1) beside the policy's own cost."""

    def __init__(self, policy: EngineEviction, parent_of: ParentOf) -> None:
        self._policy = policy
        self._parent_of = parent_of
        self._num_restores: Counter[int] = Counter()
        self._depths: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._policy)

    def add(self, page_id: int) -> None:
        self._policy.add(page_id, PageUse(self._depth_of(page_id), self._num_restores[page_id]))

    def remove(self, page_id: int) -> None:
        self._policy.remove(page_id)

    def touch(self, page_id: int) -> None:
        self._num_restores[page_id] += 1

    def forget(self, page_id: int) -> None:
        self._num_restores.pop(page_id, None)
        self._depths.pop(page_id, None)

    def pop_victim(self) -> int:
        page_id = self._policy.pop_victim()
        self.forget(page_id)
        return page_id

    def _depth_of(self, page_id: int) -> int:
        path = [page_id]
        while path[-1] not in self._depths and (parent := self._parent_of(path[-1])) is not None:
            path.append(parent)
        depth = self._depths.get(path[-1], 0)
        for place, page in enumerate(reversed(path)):
            self._depths[page] = depth + place
        return self._depths[page_id]


class LRU(TailFirstLRU):
    """The engine's own: least recently used first, the deepest first within one request. O(1)."""

    def add(self, page_id: int, use: PageUse = _NO_USE) -> None:
        super().add(page_id, use)

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


POLICIES: dict[str, Callable[[ParentOf], Eviction]] = {
    "lru": lambda parent_of: LRU(),
    "lfu": lambda parent_of: LeavesByKey(fewest_uses, parent_of),
    "fifo": lambda parent_of: LeavesByKey(oldest, parent_of),
    "length": lambda parent_of: LeavesByKey(fewest_uses_deepest, parent_of),
    "scan": lambda parent_of: FromEngine(ScanResistant(), parent_of),
    "segmented": lambda parent_of: SegmentedLRU(),
    "lru-head-first": HeadFirstLRU,
}
"""Each builds a policy for an index, whose `parent_of` says what a page hangs on."""
