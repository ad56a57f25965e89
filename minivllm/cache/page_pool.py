"""Page ids, their reference counts, and the order in which free ones are handed out. No tensors."""

from __future__ import annotations

from collections import deque

from minivllm.cache.room import Room


class OutOfPagesError(RuntimeError):
    """No page is free: the caller should have evicted, or should not have admitted."""


class PageStateError(RuntimeError):
    """A page was used in a state that does not allow it: a bug in whoever keeps the books."""


class RefCountedPagePool:
    """Pages 0 to `num_pages - 1`, each in exactly one state.

    free          in the free list; its content means nothing
    active        referenced by at least one page table
    unreferenced  held by no page table and not free: the manager keeps it as cached, or reclaims it

    allocate: free -> active      retain: active, unreferenced -> active
    release:  active -> active, unreferenced      reclaim: unreferenced -> free
    """

    def __init__(self, num_pages: int) -> None:
        if num_pages < 1:
            raise ValueError(f"num_pages={num_pages} must be at least 1")
        self.num_pages = num_pages
        self._references = [0] * num_pages
        self._free = deque(range(num_pages))
        self._is_free = [True] * num_pages

    @property
    def num_free(self) -> int:
        return len(self._free)

    def allocate(self) -> int:
        """Take the page that has been free for the longest time, with one reference."""
        return self._take(self._free)

    def retain(self, page_id: int) -> int:
        self._require(not self._is_free[page_id], page_id, "retained while free")
        self._references[page_id] += 1
        return self._references[page_id]

    def release(self, page_id: int) -> int:
        self._require(self._references[page_id] > 0, page_id, "released more often than retained")
        self._references[page_id] -= 1
        return self._references[page_id]

    def reclaim(self, page_id: int) -> None:
        self._reclaim_into(self._free, page_id)

    def _take(self, free: deque[int]) -> int:
        if not free:
            raise OutOfPagesError(f"all {self.num_pages} pages are in use or cached: evict one first")
        page_id = free.popleft()
        assert self._references[page_id] == 0, f"free page {page_id} is referenced"
        self._is_free[page_id] = False
        self._references[page_id] = 1
        return page_id

    def _reclaim_into(self, free: deque[int], page_id: int) -> None:
        self._require(not self._is_free[page_id], page_id, "reclaimed while free")
        self._require(self._references[page_id] == 0, page_id, "reclaimed while referenced")
        self._is_free[page_id] = True
        free.append(page_id)

    def references(self, page_id: int) -> int:
        return self._references[page_id]

    def free_page_ids(self) -> tuple[int, ...]:
        return tuple(self._free)

    def _require(self, holds: bool, page_id: int, what: str) -> None:
        if not holds:
            raise PageStateError(f"page {page_id} {what} (references: {self._references[page_id]})")


class TwoPrecisionPagePool(RefCountedPagePool):
    """The first `num_head_pages` ids are pages in full precision, for the head of a sequence; the others are quantized.

    Both kinds have their own free list, because neither can hold what belongs into the other.
    """

    def __init__(self, num_pages: int, num_head_pages: int) -> None:
        super().__init__(num_pages)
        self.num_head_pages = num_head_pages
        self._free_heads = deque(range(num_head_pages))
        self._free = deque(range(num_head_pages, num_pages))

    @property
    def num_free(self) -> int:
        return len(self._free) + len(self._free_heads)

    def allocate_head(self) -> int:
        """`allocate`, of the pages in full precision."""
        return self._take(self._free_heads)

    def reclaim(self, page_id: int) -> None:
        self._reclaim_into(self._free_heads if self.is_head(page_id) else self._free, page_id)

    def free_page_ids(self) -> tuple[int, ...]:
        return (*self._free_heads, *self._free)

    def free_room(self) -> Room:
        """Free pages by precision."""
        return Room(len(self._free_heads), len(self._free))

    def is_head(self, page_id: int) -> bool:
        return page_id < self.num_head_pages
