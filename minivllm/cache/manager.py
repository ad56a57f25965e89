"""The books of the cache: lookup, attach, allocate, publish, release. Composes pool, index, eviction and publication.

Where a page is, and who moves it:

                 extend                      release, not indexed
      free  ---------------->  active  ------------------------------>  free
       ^                        |  ^
       |  evict, expire, reset  |  | attach (restore)
       |                        v  |
       +---------------------  cached        release, indexed: kept, and a candidate for eviction

No tensors: `pages_to_poison` lists pages whose content has become meaningless, for an engine that overwrites them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import sub

from minivllm.cache.publisher import Publisher
from minivllm.cache.room import Room, room_between
from minivllm.protocols import Eviction, Moment, PagePool, PageUse, PrefixIndex, Publication
from minivllm.request import CacheBusyError, Request
from minivllm.stats import Counters


class CacheManager:
    """An admitted request can always get the pages it was promised.

    With admission "reserve" that is all it can ever need; with "optimistic" it is what its known tokens need, and for
    each further page `can_extend` has to be asked first.
    """

    def __init__(
        self,
        page_pool: PagePool,
        prefix_index: PrefixIndex,
        eviction: Eviction,
        publication: Publication,
        *,
        page_size: int,
        prefix_cache: bool = True,
        prefix_ttl_s: float | None = None,
        admission: str = "reserve",
        num_head_pages: int = 0,
        counters: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool = page_pool
        self.index = prefix_index
        self.eviction = eviction
        self.page_size = page_size
        self.prefix_cache = prefix_cache
        self.prefix_ttl_s = prefix_ttl_s
        self.admission = admission
        self.num_head_pages = num_head_pages
        """Pages at the head of every sequence that are kept in full precision; the pool must know them, too."""
        self.counters = counters or Counters()
        self.publisher = Publisher(
            index=prefix_index,
            policy=publication,
            adopt=self._adopt,
            counters=self.counters,
            page_size=page_size,
            enabled=prefix_cache,
        )
        self.pages_to_poison: list[int] = []
        self._clock = clock
        self._promised: dict[str, Room] = {}
        self._num_cached_heads = 0
        self._cached_since_s: dict[int, float] = {}
        self._num_restores: Counter[int] = Counter()
        self._content_numbers: dict[int, int] = {}
        self._num_contents = 0

    @property
    def num_cached_pages(self) -> int:
        return len(self._cached_since_s)

    @property
    def num_active_pages(self) -> int:
        return self.pool.num_pages - self.pool.num_free - self.num_cached_pages

    @property
    def num_promised_pages(self) -> int:
        """Pages that admitted requests may still ask for."""
        return sum(room.num_pages for room in self._promised.values())

    @property
    def promised_pages(self) -> dict[str, int]:
        """Pages that each admitted request may still ask for, by request id."""
        return {request_id: room.num_pages for request_id, room in self._promised.items()}

    @property
    def cached_page_ids(self) -> list[int]:
        """Pages that are findable and in no page table, the one that came first in front."""
        return list(self._cached_since_s)

    def pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)

    def match(self, request: Request) -> list[int]:
        """Pages this request could restore now, whole pages only. Changes nothing.

        At least one token is left to compute: keys and values alone give no logits (known fault PC-01).
        """
        if not self.prefix_cache or not request.reads_prefix_cache:
            return []
        max_pages = (len(request.token_ids) - 1) // self.page_size
        return self.index.lookup(request.token_ids, max_pages, request.cache_salt)

    def try_admit(self, request: Request) -> bool:
        """Attach what is cached and reserve the rest; False, with nothing changed, when that does not fit now.

        A cached page that is restored stops being evictable, so it may not be counted as available too (PP-03).
        """
        self.expire()
        restored = self.match(request)
        promised = self._room(len(restored), self.num_pages_at_admission(request))
        cached_heads = [self.pool.references(page_id) == 0 for page_id in restored[: self.num_head_pages]]
        cached_body = [self.pool.references(page_id) == 0 for page_id in restored[self.num_head_pages :]]
        if not (self._unpromised() - Room(sum(cached_heads), sum(cached_body))).covers(promised):
            return False
        self._promised[request.request_id] = promised
        self._attach(request, restored)
        if self.prefix_cache and request.reads_prefix_cache:
            self.counters.count_lookup(request)
        return True

    def num_pages_at_admission(self, request: Request) -> int:
        """Pages a request must be able to get before it starts, those it restores included."""
        return self.pages_for(request.max_kv_tokens if self.admission == "reserve" else request.num_prefill_tokens)

    def restore_more(self, request: Request) -> None:
        """Attach pages that others have published since, in the place of computing them.

        page table   a  b  c'            c' is half computed; c and d have been published behind b
        afterwards   a  b  c  d          c' is freed, c and d are shared; two pages less are computed
        """
        matched = self.match(request)
        if len(matched) * self.page_size <= request.num_computed_tokens:
            return
        for position in range(request.num_published_pages, len(matched)):
            self._retain_page(matched[position])
            if position < len(request.page_table):
                own, request.page_table[position] = request.page_table[position], matched[position]
                self._release_page(own, position)
            else:
                request.page_table.append(matched[position])
                self._promised[request.request_id] -= self._room(position, position + 1)
        request.num_published_pages = len(matched)
        request.num_computed_tokens = len(matched) * self.page_size
        self.counters.count_restored(request)

    def can_extend(self, request: Request, num_tokens: int) -> bool:
        """Whether `extend` would find the pages: promised ones, or ones that are promised to nobody."""
        needed = self._room(len(request.page_table), self.pages_for(num_tokens))
        return self._unpromised().covers((needed - self._promised[request.request_id]).floored())

    def extend(self, request: Request, num_tokens: int) -> None:
        """Grow the page table until it covers `num_tokens` tokens, evicting cached pages if need be."""
        assert self.can_extend(request, num_tokens), f"{request.request_id} asks for pages that others were promised"
        while len(request.page_table) < self.pages_for(num_tokens):
            one = self._room(len(request.page_table), len(request.page_table) + 1)
            promised = self._promised[request.request_id]
            assert promised.covers(one) or self.admission == "optimistic", (
                f"{request.request_id} asks for more pages than it was promised"
            )
            while not self._free().covers(one):
                self._drop(self.eviction.pop_victim())
            page_id = self.pool.allocate() if one.body else self.pool.allocate_head()  # type: ignore[attr-defined]
            self._num_contents += 1
            self._content_numbers[page_id] = self._num_contents
            request.page_table.append(page_id)
            self._promised[request.request_id] = (promised - one).floored()

    def publish(self, request: Request, moment: Moment, at_least: int = 0) -> None:
        """Make the computed pages findable that the policy allows at this moment, and `at_least` so many tokens."""
        self.publisher.publish(request, moment, at_least)

    def release(self, request: Request) -> None:
        """Give back every page of a request, deepest first, so that eviction meets tails before heads."""
        self._promised.pop(request.request_id, None)
        while request.page_table:
            page_id = request.page_table.pop()
            self._release_page(page_id, depth=len(request.page_table))

    def expire(self) -> None:
        """Drop pages that nobody has used for `prefix_ttl_s` seconds. A page in use does not age."""
        if self.prefix_ttl_s is None:
            return
        oldest_allowed_s = self._clock() - self.prefix_ttl_s
        for page_id, since_s in list(self._cached_since_s.items()):
            if since_s > oldest_allowed_s:
                break
            self.eviction.remove(page_id)
            self._drop(page_id)

    def reset(self, salt: str | None = None) -> int:
        """Forget every cached page, or those of one salt; returns how many. `CacheBusyError` while pages are in use."""
        if self.num_active_pages:
            raise CacheBusyError(f"{self.num_active_pages} pages are in use: end or abort the requests that hold them")
        indexed = self.index.page_ids() if salt is None else self.index.page_ids(salt)
        for page_id in reversed(indexed):
            self.eviction.remove(page_id)
            self._drop(page_id, evicted=False)
        return len(indexed)

    def _room(self, first: int, last: int) -> Room:
        return room_between(first, last, self.num_head_pages)

    def _free(self) -> Room:
        return self.pool.free_room() if self.num_head_pages else Room(body=self.pool.num_free)  # type: ignore[attr-defined]

    def _unpromised(self) -> Room:
        """What is free or could be evicted, less what was promised."""
        cached = Room(self._num_cached_heads, self.num_cached_pages - self._num_cached_heads)
        return reduce(sub, self._promised.values(), self._free() + cached)

    def is_head(self, page_id: int) -> bool:
        """Whether this page is one in full precision, for the head of a sequence."""
        return self.num_head_pages > 0 and self.pool.is_head(page_id)  # type: ignore[attr-defined]

    def _attach(self, request: Request, restored: list[int]) -> None:
        for page_id in restored:
            self._retain_page(page_id)
        request.page_table = list(restored)
        request.num_published_pages = len(restored)
        request.num_computed_tokens = len(restored) * self.page_size

    def _adopt(self, request: Request, position: int, found: int) -> None:
        """Someone computed the same page first: use theirs, and only then free our copy (known fault PC-14)."""
        own = request.page_table[position]
        self._retain_page(found)
        request.page_table[position] = found
        self._release_page(own, position)

    def _retain_page(self, page_id: int) -> None:
        self._num_restores[page_id] += 1
        if self.pool.retain(page_id) == 1:
            self.eviction.remove(page_id)
            self._uncache(page_id)

    def _release_page(self, page_id: int, depth: int) -> None:
        if self.pool.release(page_id) > 0:
            return
        if page_id in self.index:
            self._cached_since_s[page_id] = self._clock()
            self._num_cached_heads += self.is_head(page_id)
            self.eviction.add(page_id, PageUse(depth, self._num_restores[page_id], self._content_numbers[page_id]))
        else:
            self._reclaim(page_id)

    def _drop(self, page_id: int, evicted: bool = True) -> None:
        """A cached page loses its key and then its content: no free page is ever findable."""
        self.index.remove(page_id)
        self._uncache(page_id)
        self.counters.evicted_tokens += self.page_size if evicted else 0
        self._reclaim(page_id)

    def _uncache(self, page_id: int) -> None:
        del self._cached_since_s[page_id]
        self._num_cached_heads -= self.is_head(page_id)

    def _reclaim(self, page_id: int) -> None:
        self._num_restores.pop(page_id, None)
        self.pool.reclaim(page_id)
        self.pages_to_poison.append(page_id)
