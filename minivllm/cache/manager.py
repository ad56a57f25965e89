"""The books of the cache: lookup, attach, allocate, publish, release. Composes pool, index, eviction and publication.

Where a page is, and who moves it:

                 extend                      release, not indexed
      free  ---------------->  active  ------------------------------>  free
       ^                        |  ^
       |  evict, expire, reset  |  | attach (restore)
       |                        v  |
       +---------------------  cached        release, indexed: kept, and a candidate for eviction

A slot's partial page is active, with the slot as its owner; whenever pages run out it is given up.

No tensors: `pages_to_poison` lists pages whose content has become meaningless, for an engine that overwrites them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import reduce
from operator import sub

from minivllm.cache.cached_pages import CachedPages
from minivllm.cache.partial_pages import PartialPage, PartialPages
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
            prefix_index,
            publication,
            adopt=self._adopt,
            counters=self.counters,
            page_size=page_size,
            enabled=prefix_cache,
        )
        self.partials = PartialPages()
        self.pages_to_poison: list[int] = []
        self._clock = clock
        self._promised: dict[str, Room] = {}
        self._cached = CachedPages(eviction, self.is_head)
        self._num_restores: Counter[int] = Counter()
        self._content_numbers: dict[int, int] = {}
        self._num_contents = 0

    @property
    def num_cached_pages(self) -> int:
        return len(self._cached)

    @property
    def num_active_pages(self) -> int:
        return self.pool.num_pages - self.pool.num_free - self.num_cached_pages

    @property
    def num_promised_pages(self) -> int:
        return sum(self.promised_pages.values())

    @property
    def promised_pages(self) -> dict[str, int]:
        """Pages that each admitted request may still ask for, by request id."""
        return {request_id: room.num_pages for request_id, room in self._promised.items()}

    @property
    def cached_page_ids(self) -> list[int]:
        """Pages that are findable and in no page table, the one that came first in front."""
        return self._cached.page_ids

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

    def try_admit(self, request: Request, slot_id: int | None = None) -> bool:
        """Attach what is cached and reserve the rest; False, with nothing changed, when that does not fit now.

        In a slot, its partial page is taken over when the prompt goes on as the page does. A page that is restored
        stops being evictable, so it may not be counted as available too (PP-03).
        """
        self.expire()
        restored = self.match(request)
        num_partial_tokens = self.partials.num_tokens_for(request, restored, slot_id, self.page_size)
        num_attached = len(restored) + (num_partial_tokens > 0)
        promised = self._room(num_attached, self.num_pages_at_admission(request))
        cached = [at for at, page_id in enumerate(restored) if self.pool.references(page_id) == 0]
        taken = sum((self._room(at, at + 1) for at in cached), self._room(len(restored), num_attached))
        if not (self._unpromised() - taken).covers(promised):
            return False
        self._promised[request.request_id] = promised
        self._attach(request, restored)
        if num_partial_tokens and slot_id is not None:
            request.page_table.append(self.partials.take(slot_id).page_id)
            request.num_computed_tokens += num_partial_tokens
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
                self._make_room(one)
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

    def keep_partial(self, request: Request, slot_id: int) -> None:
        """The page in which an ended request's sequence stops becomes the slot's own, if all before it can be found.

        page table   a  b  c'            a and b are published, c' holds fewer tokens than a page
        afterwards   a  b                c' belongs to the slot
        """
        num_full_pages, num_tokens = divmod(request.num_computed_tokens, self.page_size)
        if num_tokens and self.prefix_cache and request.num_published_pages == num_full_pages:
            self.partials.keep(slot_id, PartialPage.at_the_end_of(request, self.page_size, self._clock()))
            del request.page_table[num_full_pages]

    def give_up_partial(self, slot_id: int) -> None:
        """Free the partial page of a slot, if it has one."""
        if self.partials.of(slot_id) is not None:
            page = self.partials.take(slot_id)
            self._release_page(page.page_id, page.depth)

    def expire(self) -> None:
        """Drop pages that nobody has used for `prefix_ttl_s` seconds. A page in use does not age."""
        if self.prefix_ttl_s is None:
            return
        oldest_allowed_s = self._clock() - self.prefix_ttl_s
        for page_id in self._cached.unused_since(oldest_allowed_s):
            self._cached.remove(page_id)
            self._drop(page_id)
        for slot_id, page in self.partials:
            if page.since_s <= oldest_allowed_s:
                self.give_up_partial(slot_id)

    def reset(self, salt: str | None = None) -> int:
        """Forget every cached page, or those of one salt; returns how many. `CacheBusyError` while pages are in use."""
        num_in_use = self.num_active_pages - len(self.partials)
        if num_in_use:
            raise CacheBusyError(f"{num_in_use} pages are in use: end or abort the requests that hold them")
        indexed = self.index.page_ids() if salt is None else self.index.page_ids(salt)
        self.forget(reversed(indexed))
        return len(indexed)

    def forget(self, cached_page_ids: Iterable[int]) -> None:
        """Drop cached pages, children before their parents: not for want of room, so they count as nothing evicted."""
        for page_id in cached_page_ids:
            self._cached.remove(page_id)
            self._drop(page_id, evicted=False)

    def _room(self, first: int, last: int) -> Room:
        return room_between(first, last, self.num_head_pages)

    def _free(self) -> Room:
        return self.pool.free_room() if self.num_head_pages else Room(body=self.pool.num_free)  # type: ignore[attr-defined]

    def _unpromised(self) -> Room:
        """What is free, could be evicted or given up, less what was promised."""
        available = self._free() + self._cached.room + self.partials.room(self.num_head_pages)
        return reduce(sub, self._promised.values(), available)

    def _make_room(self, needed: Room) -> None:
        """A cached page goes first: it costs a page of tokens, and there are no more partial pages than slots."""
        if len(self._cached):
            self._drop(self._cached.pop_victim())
        else:
            self.give_up_partial(self.partials.first_with(needed, self.num_head_pages))

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
            self._cached.remove(page_id)

    def _release_page(self, page_id: int, depth: int) -> None:
        if self.pool.release(page_id) > 0:
            return
        if page_id in self.index:
            use = PageUse(depth, self._num_restores[page_id], self._content_numbers[page_id])
            self._cached.add(page_id, use, self._clock())
        else:
            self._reclaim(page_id)

    def _drop(self, page_id: int, evicted: bool = True) -> None:
        """A page that nobody holds loses its key and then its content: no free page is ever findable."""
        for slot_id in self.partials.slots_behind(page_id):
            self.give_up_partial(slot_id)
        self.index.remove(page_id)
        self.counters.evicted_tokens += self.page_size if evicted else 0
        self._reclaim(page_id)

    def _reclaim(self, page_id: int) -> None:
        self._num_restores.pop(page_id, None)
        self.pool.reclaim(page_id)
        self.pages_to_poison.append(page_id)
