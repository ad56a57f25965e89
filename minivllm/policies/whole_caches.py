"""Whole caches of whole requests, the least recently used thrown away: mlx_lm.server."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict

from minivllm.policies.access import Access
from minivllm.policies.prefixes import common_length
from minivllm.policies.protocol import Counts, Stats, check_positive

Ids = tuple[int, ...]


class WholeCacheLRU:
    """One cache per request, prompt and answer; a request starts from a copy of the most alike, cut where they part.

    Models `LRUPromptCache` of mlx-lm 0.32 (mlx_lm/models/cache.py; mlx_lm.server --prompt-cache-size 10,
    --prompt-cache-bytes). A cache that is a prefix of a new one is thrown away; two that part somewhere hold what they
    share twice:

        at most 2 caches        a b c           [a b c]
                                a b c d         [a b c d]                 3 found, and the prefix is gone
                                a b x           [a b c d] [a b x]         2 found, a b is held twice
                                k               [a b x] [k]               a b c d was the least recent

    What it loses: room, to copies; and a whole cache at a time.

    Differs from mlx-lm on purpose: a hit makes a cache recent (mlx-lm's order is that of insertion), and there is one
    order instead of one for each role.
    """

    def __init__(self, max_caches: int | None = 10, capacity_units: int | None = None) -> None:
        check_positive(max_caches=max_caches, capacity_units=capacity_units)
        self.max_caches, self.capacity_units = max_caches, capacity_units
        self._counts = Counts()
        self.restart()

    def restart(self) -> None:
        self._sorted: dict[str | None, list[Ids]] = {}  # by salt; neighbours in order share the longest prefixes
        self._recency: OrderedDict[tuple[str | None, Ids], None] = OrderedDict()
        self._held_units = 0

    def lookup(self, access: Access) -> int:
        cache, shared = self._most_alike(access.salt, access.unit_ids)
        if cache is not None:
            self._make_recent(access.salt, cache)
        return self._counts.looked_up(access, shared)

    def insert(self, access: Access) -> None:
        ids = access.kept_ids
        if not ids:
            return
        if (access.salt, ids) in self._recency:
            self._make_recent(access.salt, ids)
            return
        _, shared = self._most_alike(access.salt, ids)
        self._drop_prefixes(access.salt, ids)
        insort(self._sorted.setdefault(access.salt, []), ids)
        self._recency[access.salt, ids] = None
        self._held_units += len(ids)
        self._counts.inserted_units += len(ids) - shared
        while self._is_too_full():
            salt, oldest = next(iter(self._recency))
            self._drop(salt, oldest)
            self._counts.evicted_units += len(oldest)

    def stats(self) -> Stats:
        return Stats.of(self._counts, self.capacity_units, self._held_units)

    def caches(self) -> list[Ids]:
        """What is held, the next victim first."""
        return [ids for _, ids in self._recency]

    def _most_alike(self, salt: str | None, ids: Ids) -> tuple[Ids | None, int]:
        caches = self._sorted.get(salt, [])
        place = bisect_left(caches, ids)
        neighbours = [(common_length(cache, ids), cache) for cache in caches[max(0, place - 1) : place + 1]]
        shared, cache = max(neighbours, key=lambda pair: pair[0], default=(0, ()))
        return (cache, shared) if shared else (None, 0)

    def _drop_prefixes(self, salt: str | None, ids: Ids) -> None:
        """Throw away the caches that `ids` begins with: all of them stand before it in the order."""
        caches = self._sorted.get(salt, [])
        place = bisect_left(caches, ids)
        while place:
            before = caches[place - 1]
            shared = common_length(before, ids)
            if shared == len(before):
                self._drop(salt, before)
                place -= 1
            else:  # whatever is a prefix of `ids` and stands before this one is no longer than what they share
                place = bisect_right(caches, ids[:shared]) if shared else 0

    def _make_recent(self, salt: str | None, ids: Ids) -> None:
        self._recency.move_to_end((salt, ids))

    def _drop(self, salt: str | None, ids: Ids) -> None:
        del self._recency[salt, ids]
        caches = self._sorted[salt]
        del caches[bisect_left(caches, ids)]
        if not caches:
            del self._sorted[salt]
        self._held_units -= len(ids)

    def _is_too_full(self) -> bool:
        has_too_many = self.max_caches is not None and len(self._recency) > self.max_caches
        return has_too_many or (self.capacity_units is not None and self._held_units > self.capacity_units)
