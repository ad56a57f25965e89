"""Lab 02: pages and their owners. The question is in README.md; `labs check 02` says how far you are."""

from __future__ import annotations

from minivllm.cache.page_pool import OutOfPagesError, PageStateError  # noqa: F401  (what you raise)


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
        raise NotImplementedError("MyPagePool is not written yet")

    @property
    def num_free(self) -> int:
        raise NotImplementedError("num_free is not written yet")

    def allocate(self) -> int:
        """Take a free page, with one reference. Raises OutOfPagesError when none is free."""
        raise NotImplementedError("allocate is not written yet")

    def retain(self, page_id: int) -> int:
        """Add a reference to an active or unreferenced page; returns the new count. PageStateError when it is free."""
        raise NotImplementedError("retain is not written yet")

    def release(self, page_id: int) -> int:
        """Drop one reference; returns how many are left. PageStateError when there is none."""
        raise NotImplementedError("release is not written yet")

    def reclaim(self, page_id: int) -> None:
        """Put an unreferenced page back among the free ones. PageStateError when it is active, or free already."""
        raise NotImplementedError("reclaim is not written yet")

    def references(self, page_id: int) -> int:
        raise NotImplementedError("references is not written yet")

    def free_page_ids(self) -> tuple[int, ...]:
        raise NotImplementedError("free_page_ids is not written yet")
