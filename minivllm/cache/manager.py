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

from minivllm.cache.unproven import UnprovenPage, UnprovenPages
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
        counters: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool = page_pool
        self.index = prefix_index
        self.eviction = eviction
        self.publication = publication
        self.page_size = page_size
        self.prefix_cache = prefix_cache
        self.prefix_ttl_s = prefix_ttl_s
        self.admission = admission
        self.counters = counters or Counters()
        self.pages_to_poison: list[int] = []
        self._clock = clock
        self._promised_pages: dict[str, int] = {}
        self._cached_since_s: dict[int, float] = {}
        self._num_restores: Counter[int] = Counter()
        self._unproven = UnprovenPages()

    @property
    def num_cached_pages(self) -> int:
        return len(self._cached_since_s)

    @property
    def num_active_pages(self) -> int:
        return self.pool.num_pages - self.pool.num_free - self.num_cached_pages

    @property
    def num_promised_pages(self) -> int:
        """Pages that admitted requests may still ask for."""
        return sum(self._promised_pages.values())

    @property
    def promised_pages(self) -> dict[str, int]:
        """Pages that each admitted request may still ask for, by request id."""
        return dict(self._promised_pages)

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
        promised = self.num_pages_at_admission(request) - len(restored)
        evictable = self.num_cached_pages - sum(self.pool.references(page_id) == 0 for page_id in restored)
        if promised > self.pool.num_free + evictable - self.num_promised_pages:
            return False
        self._promised_pages[request.request_id] = promised
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
                self._promised_pages[request.request_id] -= 1
        request.num_published_pages = len(matched)
        request.num_computed_tokens = len(matched) * self.page_size
        self.counters.count_restored(request)

    def can_extend(self, request: Request, num_tokens: int) -> bool:
        """Whether `extend` would find the pages: promised ones, or ones that are promised to nobody."""
        missing = self.pages_for(num_tokens) - len(request.page_table) - self._promised_pages[request.request_id]
        return missing <= self.pool.num_free + self.num_cached_pages - self.num_promised_pages

    def extend(self, request: Request, num_tokens: int) -> None:
        """Grow the page table until it covers `num_tokens` tokens, evicting cached pages if need be."""
        assert self.can_extend(request, num_tokens), f"{request.request_id} asks for pages that others were promised"
        while len(request.page_table) < self.pages_for(num_tokens):
            promised = self._promised_pages[request.request_id]
            assert promised > 0 or self.admission == "optimistic", (
                f"{request.request_id} asks for more pages than it was promised"
            )
            if self.pool.num_free == 0:
                self._drop(self.eviction.pop_victim())
            request.page_table.append(self.pool.allocate())
            self._promised_pages[request.request_id] = max(0, promised - 1)

    def publish(self, request: Request, moment: Moment, at_least: int = 0) -> None:
        """Make the computed pages findable that the publication policy allows at this moment.

        A request that may not read the cache publishes at its end alone: a page that was found under its key before
        would replace its own, and it would attend to what it did not compute. `at_least` tokens become findable
        whatever the policy says: somebody waits for them.
        """
        if not self.prefix_cache or (moment is Moment.COMPUTED and not request.reads_prefix_cache):
            return
        self.counters.count_published(request, self._unproven.prove(request.request_id) * self.page_size)
        findable = max(self._findable_tokens(request, moment, request.num_computed_tokens), at_least)
        while not request.publication_stopped and (request.num_published_pages + 1) * self.page_size <= findable:
            self._publish_next_page(request)

    def publish_ahead(self, request: Request, num_tokens: int) -> None:
        """Make pages findable that the step under way completes when it has computed `num_tokens` tokens.

        A page that somebody else holds under the same key is left for `publish`, when ours is computed, too.
        """
        if not self.prefix_cache or not request.reads_prefix_cache or request.publication_stopped:
            return
        findable = self._findable_tokens(request, Moment.SCHEDULED, num_tokens)
        while (request.num_published_pages + 1) * self.page_size <= findable:
            position = request.num_published_pages
            own = request.page_table[position]
            if self._insert(request, position) != own:
                return
            self._unproven.add(UnprovenPage(own, self.index.parent_of(own), request.request_id))
            request.num_published_pages += 1

    def withdraw(self, request: Request) -> list[int]:
        """The step failed for this request: forget what it published ahead, and every page chained behind.

        Returns the page ids; whoever holds one has read what was never computed.
        """
        withdrawn = self._unproven.withdraw(request.request_id)
        for page_id in withdrawn:
            self.index.remove(page_id)
        return withdrawn

    def is_unproven(self, page_id: int) -> bool:
        """Whether a page can be found and the step under way has yet to compute it."""
        return page_id in self._unproven

    @property
    def num_unproven_pages(self) -> int:
        return len(self._unproven)

    def release(self, request: Request) -> None:
        """Give back every page of a request, deepest first, so that eviction meets tails before heads."""
        self._promised_pages.pop(request.request_id, None)
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

    def _attach(self, request: Request, restored: list[int]) -> None:
        for page_id in restored:
            self._retain_page(page_id)
        request.page_table = list(restored)
        request.num_published_pages = len(restored)
        request.num_computed_tokens = len(restored) * self.page_size

    def _findable_tokens(self, request: Request, moment: Moment, num_tokens: int) -> int:
        findable = self.publication.findable_tokens(moment, num_tokens, request.num_prompt_tokens)
        assert findable <= num_tokens, f"{findable} tokens published, {num_tokens} computed"
        return findable

    def _publish_next_page(self, request: Request) -> None:
        position = request.num_published_pages
        found = self._insert(request, position)
        if found is None:
            # Another content owns this key. Without this page its children could never be reached: stop here.
            request.publication_stopped = True
            return
        if found == request.page_table[position]:
            self.counters.count_published(request, self.page_size)
        else:
            self._adopt(request, position, found)
        request.num_published_pages += 1

    def _insert(self, request: Request, position: int) -> int | None:
        """The page that is found for this page of the request from now on; None when another content owns its key."""
        table, size = request.page_table, self.page_size
        tokens = request.token_ids[position * size : (position + 1) * size]
        return self.index.insert(tokens, table[position - 1] if position else None, table[position], request.cache_salt)

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
            del self._cached_since_s[page_id]

    def _release_page(self, page_id: int, depth: int) -> None:
        if self.pool.release(page_id) > 0:
            return
        if page_id in self.index:
            self._cached_since_s[page_id] = self._clock()
            self.eviction.add(page_id, PageUse(depth, self._num_restores[page_id]))
        else:
            self._reclaim(page_id)

    def _drop(self, page_id: int, evicted: bool = True) -> None:
        """A cached page loses its key and then its content: no free page is ever findable."""
        self.index.remove(page_id)
        del self._cached_since_s[page_id]
        self.counters.evicted_tokens += self.page_size if evicted else 0
        self._reclaim(page_id)

    def _reclaim(self, page_id: int) -> None:
        self._num_restores.pop(page_id, None)
        self.pool.reclaim(page_id)
        self.pages_to_poison.append(page_id)
