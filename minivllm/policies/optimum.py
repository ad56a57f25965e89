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


class OptimalCache:
    """Keeps, after every request, the blocks that are asked for again soonest.

    A bound and no policy: it reads the traffic before the replay, in the same order. Blocks of the request itself may
    be dropped at once. Belady's rule (1966), with requests that use many blocks at a time; equal next uses happen along
    one prefix only, and the deepest goes first. Since whoever asks for a block asks for everything before it, what is
    left are prefixes. Keeping a block until its next use occupies one place between two requests, so this is the choice
    of the most intervals of which no more than `capacity_blocks` overlap, for which dropping the one that ends last is
    optimal. Holds for publication delay 0: whatever is computed is findable for the next request.

        room for 2      a b     then c     then a b      keeps a and b, and c is not kept at all: 2 found

    Of the whole future it keeps 8 bytes for every block of the traffic, and every distinct block: the only design here
    whose memory grows with the trace.
    """

    def __init__(self, capacity_blocks: int, future: Iterable[Access], block_units: int = 1) -> None:
        check_positive(capacity_blocks=capacity_blocks, block_units=block_units)
        self.capacity_blocks, self.block_units = capacity_blocks, block_units
        self._names = _BlockNames(block_units)
        self._next_use, self._ends = self._read(future)
        self._place, self._request = 0, -1
        self._counts = Counts()
        self.restart()

    def restart(self) -> None:
        self._next_use_of: dict[int, int] = {}  # of the blocks held
        self._heap: list[tuple[int, int, int]] = []  # latest next use first, then deepest

    def lookup(self, access: Access) -> int:
        names = self._names.of(access.unit_ids, access.salt)
        found = sum(1 for _ in itertools.takewhile(self._next_use_of.__contains__, names))
        return self._counts.looked_up(access, found * self.block_units)

    def insert(self, access: Access) -> None:
        self._request += 1
        names = list(self._names.of(access.kept_ids, access.salt))
        if self._request >= len(self._ends) or self._ends[self._request] - self._place != len(names):
            raise ValueError(f"request {self._request} is not the one that the future had in this place")
        num_before = sum(name in self._next_use_of for name in names)
        for depth, name in enumerate(names):
            self._expect(name, depth, self._next_use[self._place + depth])
        self._place = self._ends[self._request]
        self._counts.inserted_units += (len(names) - num_before) * self.block_units
        while len(self._next_use_of) > self.capacity_blocks:
            self._drop_last_needed()

    def stats(self) -> Stats:
        size = self.block_units
        return Stats.of(self._counts, self.capacity_blocks * size, len(self._next_use_of) * size)

    def _expect(self, name: int, depth: int, next_use: int) -> None:
        self._next_use_of[name] = next_use
        heapq.heappush(self._heap, (-next_use, -depth, name))

    def _drop_last_needed(self) -> None:
        while True:
            next_use, _, name = heapq.heappop(self._heap)
            if self._next_use_of.get(name) == -next_use:
                del self._next_use_of[name]
                self._counts.evicted_units += self.block_units
                return

    def _read(self, future: Iterable[Access]) -> tuple[array[int], array[int]]:
        """For every block of every request the number of the request whose prompt has it next, and where each ends."""
        next_use, ends, last_place = array("q"), array("q"), dict[int, int]()
        for request, access in enumerate(future):
            num_asked = len(access.unit_ids) // self.block_units
            for depth, name in enumerate(self._names.of(access.kept_ids, access.salt)):
                before = last_place.get(name)
                if before is not None and depth < num_asked:  # else it is made anew, and keeping it would win nothing
                    next_use[before] = request
                last_place[name] = len(next_use)
                next_use.append(NEVER)
            ends.append(len(next_use))
        return next_use, ends


class _BlockNames:
    """A number for every distinct block with everything before it."""

    def __init__(self, block_units: int) -> None:
        self._index = ExactPrefixIndex(block_units)

    def of(self, ids: tuple[int, ...], salt: str | None) -> Iterator[int]:
        size, parent = self._index.page_size, None
        for start in range(0, len(ids) - size + 1, size):
            parent = self._index.insert(ids[start : start + size], parent, len(self._index), salt)
            yield parent
