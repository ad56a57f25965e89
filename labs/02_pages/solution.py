"""Lab 02, a solution: a queue of free pages, and a count for each page."""

from __future__ import annotations

from collections import deque

from minivllm.cache.page_pool import OutOfPagesError, PageStateError


class SlowPagePool:
    """What a pool means, slowly: one list of the owners' marks for each page, None for a free one."""

    def __init__(self, num_pages: int) -> None:
        self.marks: list[list[str] | None] = [None] * num_pages

    def allocate(self) -> int:
        page_id = self.marks.index(None)
        self.marks[page_id] = ["owner"]
        return page_id

    def retain(self, page_id: int) -> int:
        marks = self.marks[page_id]
        assert marks is not None, "a free page holds nothing to share"
        marks.append("owner")
        return len(marks)

    def release(self, page_id: int) -> int:
        marks = self.marks[page_id]
        assert marks, "nobody holds this page"
        marks.pop()
        return len(marks)

    def reclaim(self, page_id: int) -> None:
        assert self.marks[page_id] == [], "somebody holds this page, or it is free already"
        self.marks[page_id] = None


class MyPagePool:
    """Pages 0 to `num_pages - 1`, each free, active (referenced) or unreferenced."""

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self.counts = [0] * num_pages
        self.free = deque(range(num_pages))
        self.is_free = [True] * num_pages

    @property
    def num_free(self) -> int:
        return len(self.free)

    def allocate(self) -> int:
        """Take a free page, with one reference. Raises OutOfPagesError when none is free."""
        if not self.free:
            raise OutOfPagesError(f"all {self.num_pages} pages are in use")
        page_id = self.free.popleft()
        self.is_free[page_id] = False
        self.counts[page_id] = 1
        return page_id

    def retain(self, page_id: int) -> int:
        """Add a reference to an active or unreferenced page; returns the new count. PageStateError when it is free."""
        self.require(not self.is_free[page_id], f"page {page_id} is free: there is nothing to share")
        self.counts[page_id] += 1
        return self.counts[page_id]

    def release(self, page_id: int) -> int:
        """Drop one reference; returns how many are left. PageStateError when there is none."""
        self.require(self.counts[page_id] > 0, f"page {page_id} is held by nobody")
        self.counts[page_id] -= 1
        return self.counts[page_id]

    def reclaim(self, page_id: int) -> None:
        """Put an unreferenced page back among the free ones. PageStateError when it is active, or free already."""
        self.require(self.counts[page_id] == 0, f"page {page_id} is held by {self.counts[page_id]} page tables")
        self.require(not self.is_free[page_id], f"page {page_id} is free already")
        self.is_free[page_id] = True
        self.free.append(page_id)

    def references(self, page_id: int) -> int:
        return self.counts[page_id]

    def free_page_ids(self) -> tuple[int, ...]:
        return tuple(self.free)

    def require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise PageStateError(otherwise)
