"""Belady's optimum: what a cache of whole blocks could find at best, had it known the future."""

from __future__ import annotations

import heapq
import itertools
from array import array
from collections.abc import Iterable, Iterator

from minivllm.policies.access import Access
from minivllm.policies.exact_index import ExactPrefixIndex
from minivllm.policies.protocol import Counts, Stats, check_positive

NEVER = 2**62


class Future:
    """When every block of the traffic is asked for next. Made once, for as many optima as are wanted.

    Keeps 8 bytes for every block of the traffic, and every distinct block: the only thing here that grows with it.
    """

    def __init__(self, traffic: Iterable[Access], block_units: int = 1) -> None:
        check_positive(block_units=block_units)
        self.block_units = block_units
        self.next_use = array("q")  # the number of a request, for each block of each request in order
        self.ends = array("q")  # where the blocks of each request end in `next_use`
        self._index = ExactPrefixIndex(block_units)
        last_place: dict[int, int] = {}
        for request, access in enumerate(traffic):
            num_asked = len(access.unit_ids) // block_units
            for depth, name in enumerate(self.names(access.kept_ids, access.salt)):
                before = last_place.get(name)
                if before is not None and depth < num_asked:  # else it is made anew, and keeping it would win nothing
                    self.next_use[before] = request
                last_place[name] = len(self.next_use)
                self.next_use.append(NEVER)
            self.ends.append(len(self.next_use))

    def names(self, ids: tuple[int, ...], salt: str | None) -> Iterator[int]:
        """A number for every whole block with everything before it."""
        size, parent = self.block_units, None
        for start in range(0, len(ids) - size + 1, size):
            parent = self._index.insert(ids[start : start + size], parent, len(self._index), salt)
            yield parent


class OptimalCache:
    """Keeps, after every request, the blocks that are asked for again soonest.

    A bound and no policy: it reads the traffic before the replay, in the same order. Blocks of the request itself may
    be dropped at once. Belady's rule (1966), with requests that use many blocks at a time; equal next uses happen along
    one prefix only, and the deepest goes first. Since whoever asks for a block asks for everything before it, what is
    left are prefixes. Keeping a block until its next use occupies one place between two requests, so this is the choice
    of the most intervals of which no more than `capacity_blocks` overlap, for which dropping the one that ends last is
    optimal. Holds for publication delay 0: whatever is computed is findable for the next request.

        room for 2      a b     then c     then a b      keeps a and b, and c is not kept at all: 2 found
    """

    def __init__(self, capacity_blocks: int, future: Future) -> None:
        check_positive(capacity_blocks=capacity_blocks)
        self.capacity_blocks, self._future = capacity_blocks, future
        self._num_requests, self._place = 0, 0
        self._counts = Counts()
        self.restart()

    def restart(self) -> None:
        self._next_use_of: dict[int, int] = {}  # of the blocks held
        self._heap: list[tuple[int, int, int]] = []  # latest next use first, then deepest

    def lookup(self, access: Access) -> int:
        names = self._future.names(access.unit_ids, access.salt)
        found = sum(1 for _ in itertools.takewhile(self._next_use_of.__contains__, names))
        return self._counts.looked_up(access, found * self._future.block_units)

    def insert(self, access: Access) -> None:
        names = list(self._future.names(access.kept_ids, access.salt))
        is_over = self._num_requests >= len(self._future.ends)
        if is_over or self._future.ends[self._num_requests] - self._place != len(names):
            raise ValueError(f"request {self._num_requests} is not the one that the future had in this place")
        for depth, name in enumerate(names):
            self._expect(name, depth, self._future.next_use[self._place + depth])
        self._num_requests += 1
        self._place += len(names)
        while len(self._next_use_of) > self.capacity_blocks:
            self._drop_last_needed()

    def stats(self) -> Stats:
        size = self._future.block_units
        return Stats.of(self._counts, self.capacity_blocks * size, len(self._next_use_of) * size)

    def _expect(self, name: int, depth: int, next_use: int) -> None:
        if name not in self._next_use_of:
            self._counts.inserted_units += self._future.block_units
        self._next_use_of[name] = next_use
        heapq.heappush(self._heap, (-next_use, -depth, name))
        if len(self._heap) > 2 * len(self._next_use_of) + 64:  # most of it is about uses that are over
            self._heap = [entry for entry in self._heap if self._next_use_of.get(entry[2]) == -entry[0]]
            heapq.heapify(self._heap)

    def _drop_last_needed(self) -> None:
        while True:
            next_use, _, name = heapq.heappop(self._heap)
            if self._next_use_of.get(name) == -next_use:
                del self._next_use_of[name]
                self._counts.evicted_units += self._future.block_units
                return
