"""Scan-resistant eviction: what was used once goes before anything that came back."""

from __future__ import annotations

from collections import OrderedDict


class SegmentedLRU:
    """Two LRU queues, probation and protected. O(1).

    A block enters the second when it is found again. When a victim is wanted and the second holds more than
    `protected_share` of the candidates, its least recent go back to the end of the first (segmented LRU: Karedla and
    others, "Caching strategies to improve disk system performance", 1994). A long document that is read once flushes
    probation only.

    Tail-first, as LRU: a block comes back no less often and is released no earlier than what hangs on it.
    """

    def __init__(self, protected_share: float = 0.8) -> None:
        self.protected_share = protected_share
        self._probation: OrderedDict[int, None] = OrderedDict()
        self._protected: OrderedDict[int, None] = OrderedDict()
        self._came_back: set[int] = set()

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def add(self, page_id: int) -> None:
        queue = self._protected if page_id in self._came_back else self._probation
        queue[page_id] = None

    def remove(self, page_id: int) -> None:
        queue = self._protected if page_id in self._protected else self._probation
        del queue[page_id]

    def touch(self, page_id: int) -> None:
        self._came_back.add(page_id)

    def forget(self, page_id: int) -> None:
        self._came_back.discard(page_id)

    def pop_victim(self) -> int:
        while len(self._protected) > self.protected_share * len(self):
            demoted, _ = self._protected.popitem(last=False)
            self._came_back.discard(demoted)
            self._probation[demoted] = None
        queue = self._probation or self._protected
        page_id, _ = queue.popitem(last=False)
        self.forget(page_id)
        return page_id
