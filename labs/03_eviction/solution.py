"""Lab 03, a solution: a queue. Deepest first on arrival is tail first on departure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Set
from typing import TypeVar

from minivllm.protocols import PageUse

Page = TypeVar("Page", bound=Hashable)


def slow_reachable(page: Page, cached: Set[Page], parent_of: Mapping[Page, Page | None]) -> bool:
    """What reachable means, slowly: the page and everything up to the head is cached."""
    parent = parent_of[page]
    return page in cached and (parent is None or slow_reachable(parent, cached, parent_of))


def stranded(cached: Set[Page], parent_of: Mapping[Page, Page | None]) -> set[Page]:
    """The cached pages that no lookup can reach, because a page before them is gone.

    `parent_of` knows every page there ever was; the first page of a sequence has the parent None.
    """
    return {page for page in cached if not slow_reachable(page, cached, parent_of)}


class MyEviction:
    """Which cached page goes next: least recently used first, and of one request's pages the deepest first."""

    def __init__(self) -> None:
        self.queue: OrderedDict[int, None] = OrderedDict()

    def add(self, page_id: int, use: PageUse) -> None:
        """A page that nobody uses any more. Pages of one request arrive one after the other, the deepest first.

        `use.depth` is its place in the page table (0: the head).
        """
        self.queue[page_id] = None

    def remove(self, page_id: int) -> None:
        """The page is used again, or was dropped: it is no candidate any more."""
        del self.queue[page_id]

    def pop_victim(self) -> int:
        """The page to evict next; it is no candidate any more."""
        return self.queue.popitem(last=False)[0]

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.queue)
