"""Blocks found by chained keys: vLLM's automatic prefix caching, and minivllm's own index."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.policies.access import Access
from minivllm.policies.eviction import POLICIES
from minivllm.policies.exact_index import ExactPrefixIndex
from minivllm.policies.protocol import Counts, Stats, check_positive
from minivllm.protocols import PrefixIndex


class BlockHashCache:
    """Whole blocks of a fixed size, each found under the key of everything up to and including it.

    Models vLLM's prefix caching (vllm/v1/core/kv_cache_manager.py and block_pool.py of 0.11 and later: block size 16,
    `cache_salt` in the first key, free blocks kept and evicted least recent first, a request's last block first):

        blocks of 2, room for 3         a b c d e     (root, a b) → 0,  (0, c d) → 1        e fills no block
                                        a b x y       finds block 0, adds (0, x y) → 2
                                        k l           evicts 1, the deepest block of the least recent request

    What it loses: the part of a prompt that fills no block, on either side of where two prompts part.

    With `engine_index` the keys are made and compared by the engine's own `ChainedPrefixIndex`; without, by an index
    that gives the same answers faster. While a request is being inserted its blocks are held, as an engine holds those
    of a running request, so a request longer than the cache keeps its head.
    """

    def __init__(
        self, capacity_blocks: int | None, block_units: int = 1, eviction: str = "lru", engine_index: bool = False
    ) -> None:
        check_positive(capacity_blocks=capacity_blocks, block_units=block_units)
        if eviction not in POLICIES:
            raise ValueError(f"eviction is {eviction!r}: choose one of {', '.join(POLICIES)}")
        self.capacity_blocks, self.block_units, self.eviction = capacity_blocks, block_units, eviction
        self._has_engine_index = engine_index
        self._counts = Counts()
        self._page_ids = itertools.count()  # never given twice, so that no key outlives its parent's content
        self.restart()

    def restart(self) -> None:
        self._index: PrefixIndex = (ChainedPrefixIndex if self._has_engine_index else ExactPrefixIndex)(
            self.block_units
        )
        self._candidates = POLICIES[self.eviction](self._index.parent_of)
        self._looked_up_last: tuple[Access | None, list[int]] = (None, [])

    def lookup(self, access: Access) -> int:
        found = self._index.lookup(access.unit_ids, len(access.unit_ids) // self.block_units, access.salt)
        self._looked_up_last = access, found
        return self._counts.looked_up(access, len(found) * self.block_units)

    def insert(self, access: Access) -> None:
        ids = access.kept_ids
        path = self._held_path(access)
        for page_id in path:
            self._candidates.touch(page_id)
            self._candidates.remove(page_id)
        self._extend(path, ids, access.salt)
        for page_id in reversed(path):
            self._candidates.add(page_id)

    def stats(self) -> Stats:
        capacity = None if self.capacity_blocks is None else self.capacity_blocks * self.block_units
        held = len(self._index) * self.block_units
        return Stats.of(self._counts, capacity, held, self._num_unreachable() * self.block_units)

    def _held_path(self, access: Access) -> list[int]:
        """The pages of the request that are here already; what its own lookup found, if nothing has happened since."""
        looked_up, found = self._looked_up_last
        self._looked_up_last = None, []
        if looked_up is access and not access.output_ids:
            return found
        ids = access.kept_ids
        return self._index.lookup(ids, len(ids) // self.block_units, access.salt)

    def _extend(self, path: list[int], ids: Sequence[int], salt: str | None) -> None:
        """Add the blocks of `ids` behind the held `path`, as far as there is room for them."""
        size = self.block_units
        for start in range(len(path) * size, len(ids) - size + 1, size):
            page_id = self._take_page()
            if page_id is None:
                return
            parent = path[-1] if path else None
            if self._index.insert(ids[start : start + size], parent, page_id, salt) != page_id:
                return  # the key belongs to a block that lost its parent
            path.append(page_id)
            self._counts.inserted_units += size

    def _take_page(self) -> int | None:
        if self.capacity_blocks is None or len(self._index) < self.capacity_blocks:
            return next(self._page_ids)
        if not len(self._candidates):
            return None
        self._index.remove(self._candidates.pop_victim())
        self._counts.evicted_units += self.block_units
        return next(self._page_ids)

    def _num_unreachable(self) -> int:
        """Blocks behind an evicted one; every policy that keeps its promise leaves none. Parents come first."""
        reachable: set[int] = set()
        for page_id in self._index.page_ids():
            parent = self._index.parent_of(page_id)
            if parent is None or parent in reachable:
                reachable.add(page_id)
        return len(self._index) - len(reachable)
