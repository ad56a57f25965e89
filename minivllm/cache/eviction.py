"""Which cached page goes next. No tensors, no clock: order is a matter of counting."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from minivllm.protocols import Eviction, PageUse

ParentOf = Callable[[int], int | None]
Key = Callable[[PageUse], Any]

# A plain dict finds its first key by walking over all that were deleted before it: 30 us in a queue of 1,000,000.
Queue = OrderedDict[int, None]

BATCHES_PER_FOOTHOLD = 8


class TailFirstLRU:
    """Least recently used first; of one request's pages, the deepest first.

    A sequence is only reachable from its head, so evicting the head strands the tail (known fault PP-01):

        page table  [ a | b | c | d ]      released in the order d, c, b, a
        evicted     d, then c, then b, then a: what is left is always a prefix

    Whoever uses a page uses all its ancestors and releases them after it, so an ancestor is never less recent than a
    descendant and a plain queue is enough.
    """

    def __init__(self) -> None:
        self._queue: Queue = OrderedDict()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, page_id: int, use: PageUse) -> None:
        assert page_id not in self._queue, f"page {page_id} is a candidate already"
        self._queue[page_id] = None

    def remove(self, page_id: int) -> None:
        del self._queue[page_id]

    def pop_victim(self) -> int:
        return self._queue.popitem(last=False)[0]

    def order(self) -> list[int]:
        """Candidates, the next victim first."""
        return list(self._queue)


class ScanResistant:
    """Pages that nobody came back for go first, the newest of them before the older; then the others, as in LRU.

    Under LRU a working set a little larger than the pool restores nothing: when a prompt comes round again it has just
    been evicted for the one before it. Here newcomers take each other's place and the rest stays:

        untried   | A | B | C |       a stack of batches, one request's pages each: C goes first, and of C the tail
        tried     [ d c b a ...       a queue, least recently used first: pages that were restored at least once

    Left alone, old pages that nobody wants would keep new traffic out for ever. So every eighth batch goes to the end
    of the queue untried. This is bimodal insertion (Qureshi et al., "Adaptive Insertion Policies for High Performance
    Caching", ISCA 2007) with every eighth in the place of one in 32 at random.

    An ancestor is restored whenever its descendant is, so the stack never holds an ancestor of a page in the queue.
    """

    def __init__(self) -> None:
        self._tried: Queue = OrderedDict()
        self._untried: OrderedDict[int, Queue] = OrderedDict()
        self._batch_of_page: dict[int, int] = {}
        self._num_batches = 0
        self._last_depth = 0

    def __len__(self) -> int:
        return len(self._tried) + len(self._batch_of_page)

    def add(self, page_id: int, use: PageUse) -> None:
        assert page_id not in self._tried, f"page {page_id} is a candidate already"
        assert page_id not in self._batch_of_page, f"page {page_id} is a candidate already"
        if use.num_restores or self._has_foothold(use.depth):
            self._tried[page_id] = None
            return
        self._batch_of_page[page_id] = self._num_batches
        self._untried.setdefault(self._num_batches, OrderedDict())[page_id] = None

    def remove(self, page_id: int) -> None:
        if page_id not in self._batch_of_page:
            del self._tried[page_id]
            return
        number = self._batch_of_page.pop(page_id)
        del self._untried[number][page_id]
        if not self._untried[number]:
            del self._untried[number]

    def pop_victim(self) -> int:
        newest = self._untried[next(reversed(self._untried))] if self._untried else self._tried
        page_id = next(iter(newest))
        self.remove(page_id)
        return page_id

    def order(self) -> list[int]:
        """Candidates, the next victim first."""
        return [page_id for queue in (*reversed(self._untried.values()), self._tried) for page_id in queue]

    def _has_foothold(self, depth: int) -> bool:
        """Whether the batch of this page is an eighth one.

        Pages of one request arrive deepest first, one after the other: one that is not shallower than the page before
        it begins the next batch.
        """
        self._num_batches += depth >= self._last_depth
        self._last_depth = depth
        return self._num_batches % BATCHES_PER_FOOTHOLD == 0


class LeavesByKey:
    """Of the candidates that no other candidate is chained to, the one with the smallest key; at equal keys the least
    recently released. O(log n).

    Any key will do, because only leaves are ever offered: a page becomes one when the last page behind it has gone.
    Heap entries that have become wrong stay until they are popped, or outnumber the others.
    """

    def __init__(self, key: Key, parent_of: ParentOf) -> None:
        self._key = key
        self._parent_of = parent_of
        self._candidates: dict[int, tuple[PageUse, int]] = {}
        self._parents: dict[int, int | None] = {}
        self._num_children: Counter[int] = Counter()
        self._heap: list[tuple[Any, int, int]] = []
        self._releases = itertools.count()

    def __len__(self) -> int:
        return len(self._candidates)

    def add(self, page_id: int, use: PageUse) -> None:
        assert page_id not in self._candidates, f"page {page_id} is a candidate already"
        self._candidates[page_id] = use, next(self._releases)
        parent = self._parents[page_id] = self._parent_of(page_id)
        if parent is not None:
            self._num_children[parent] += 1
        self._offer(page_id)

    def remove(self, page_id: int) -> None:
        del self._candidates[page_id]
        parent = self._parents.pop(page_id)
        if parent is None:
            return
        self._num_children[parent] -= 1
        if not self._num_children[parent]:
            del self._num_children[parent]
            self._offer(parent)

    def pop_victim(self) -> int:
        while True:
            entry = heapq.heappop(self._heap)
            if self._is_current(entry):
                self.remove(entry[2])
                return entry[2]

    def _offer(self, page_id: int) -> None:
        if page_id not in self._candidates or page_id in self._num_children:
            return
        use, release = self._candidates[page_id]
        heapq.heappush(self._heap, (self._key(use), release, page_id))
        if len(self._heap) > 2 * len(self._candidates) + 64:
            self._heap = [entry for entry in set(self._heap) if self._is_current(entry)]
            heapq.heapify(self._heap)

    def _is_current(self, entry: tuple[Any, int, int]) -> bool:
        _, release, page_id = entry
        found = self._candidates.get(page_id)
        return found is not None and found[1] == release and page_id not in self._num_children


def _least_used(use: PageUse) -> int:
    return use.num_restores


def _oldest(use: PageUse) -> int:
    return use.content_number


def _least_used_deepest(use: PageUse) -> tuple[int, int]:
    """Length-aware, as in Mooncake's comparison (Qin and others, FAST '25): later pages of long requests first."""
    return use.num_restores, -use.depth


POLICIES: dict[str, Callable[[ParentOf], Eviction]] = {
    "lru": lambda parent_of: TailFirstLRU(),
    "lfu": lambda parent_of: LeavesByKey(_least_used, parent_of),
    "fifo": lambda parent_of: LeavesByKey(_oldest, parent_of),
    "length": lambda parent_of: LeavesByKey(_least_used_deepest, parent_of),
    "scan": lambda parent_of: ScanResistant(),
}
"""The choices of `EngineConfig.eviction`; each is built for the index whose `parent_of` it may ask."""
