"""Which cached page goes next. No tensors, no clock: order is a matter of counting."""

from __future__ import annotations


class TailFirstLRU:
    """Least recently used first; of one request's pages, the deepest first.

    A sequence is only reachable from its head, so evicting the head strands the tail (known fault PP-01):

        page table  [ a | b | c | d ]      released in the order d, c, b, a
        evicted     d, then c, then b, then a: what is left is always a prefix

    Whoever uses a page uses all its ancestors and releases them after it, so an ancestor is never less recent than a
    descendant and a plain queue is enough.
    """

    def __init__(self) -> None:
        self._queue: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, page_id: int) -> None:
        assert page_id not in self._queue, f"page {page_id} is a candidate already"
        self._queue[page_id] = None

    def remove(self, page_id: int) -> None:
        del self._queue[page_id]

    def pop_victim(self) -> int:
        page_id = next(iter(self._queue))
        del self._queue[page_id]
        return page_id

    def order(self) -> list[int]:
        """Candidates, the next victim first."""
        return list(self._queue)
