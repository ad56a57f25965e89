"""Publisher: makes pages findable when the publication policy says so, and takes back what was promised too early."""

from __future__ import annotations

from collections.abc import Callable

from minivllm.cache.unproven import UnprovenPage, UnprovenPages
from minivllm.protocols import Moment, PrefixIndex, Publication
from minivllm.request import Request
from minivllm.stats import Counters

Adopt = Callable[[Request, int, int], None]
"""Put a page into a request's page table, at a place, in the stead of its own equal one."""


class Publisher:
    """`num_published_pages` of a request are its leading pages that can be found; here it grows, page by page."""

    def __init__(
        self,
        index: PrefixIndex,
        policy: Publication,
        *,
        adopt: Adopt,
        counters: Counters,
        page_size: int,
        enabled: bool,
    ) -> None:
        self._index = index
        self._policy = policy
        self._adopt = adopt
        self._counters = counters
        self._page_size = page_size
        self._enabled = enabled
        self._unproven = UnprovenPages()

    def publish(self, request: Request, moment: Moment, at_least: int = 0) -> None:
        """Make the computed pages findable that the publication policy allows at this moment.

        A request that may not read the cache publishes at its end alone: a page that was found under its key before
        would replace its own, and it would attend to what it did not compute. `at_least` tokens become findable
        whatever the policy says: somebody waits for them.
        """
        if not self._enabled or (moment is Moment.COMPUTED and not request.reads_prefix_cache):
            return
        self._counters.count_published(request, self._unproven.prove(request.request_id) * self._page_size)
        findable = max(self._findable_tokens(request, moment, request.num_computed_tokens), at_least)
        while not request.publication_stopped and (request.num_published_pages + 1) * self._page_size <= findable:
            self._publish_next_page(request)

    def publish_ahead(self, request: Request, num_tokens: int) -> None:
        """Make pages findable that the step under way completes when it has computed `num_tokens` tokens.

        A page that somebody else holds under the same key is left for `publish`, when ours is computed, too.
        """
        if not self._enabled or not request.reads_prefix_cache or request.publication_stopped:
            return
        findable = self._findable_tokens(request, Moment.SCHEDULED, num_tokens)
        while (request.num_published_pages + 1) * self._page_size <= findable:
            position = request.num_published_pages
            own = request.page_table[position]
            if self._insert(request, position) != own:
                return
            self._unproven.add(UnprovenPage(own, self._index.parent_of(own), request.request_id))
            request.num_published_pages += 1

    def withdraw(self, request: Request) -> list[int]:
        """The step failed for this request: forget what it published ahead, and every page chained behind.

        Returns the page ids; whoever holds one has read what was never computed.
        """
        withdrawn = self._unproven.withdraw(request.request_id)
        for page_id in withdrawn:
            self._index.remove(page_id)
        return withdrawn

    def is_unproven(self, page_id: int) -> bool:
        """Whether a page can be found and the step under way has yet to compute it."""
        return page_id in self._unproven

    @property
    def num_unproven_pages(self) -> int:
        return len(self._unproven)

    def _findable_tokens(self, request: Request, moment: Moment, num_tokens: int) -> int:
        findable = self._policy.findable_tokens(moment, num_tokens, request.num_prompt_tokens)
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
            self._counters.count_published(request, self._page_size)
        else:
            self._adopt(request, position, found)
        request.num_published_pages += 1

    def _insert(self, request: Request, position: int) -> int | None:
        """The page that is found for this page of the request from now on; None when another content owns its key."""
        table, size = request.page_table, self._page_size
        tokens = request.token_ids[position * size : (position + 1) * size]
        return self._index.insert(
            tokens, table[position - 1] if position else None, table[position], request.cache_salt
        )
