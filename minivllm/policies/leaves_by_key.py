"""Eviction of leaves in the order of a key: least frequently used, first in first out, length-aware."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ParentOf = Callable[[int], int | None]


@dataclass(slots=True)
class Past:
    """What a policy may know of one page. Times are counted in calls of `add`."""

    born: int
    depth: int
    uses: int = 1
    released: int = 0
    parent: int | None = None
    num_candidate_children: int = 0
    is_candidate: bool = False


Key = Callable[[Past], Any]


def fewest_uses(past: Past) -> int:
    """LFU: least frequently used first."""
    return past.uses


def oldest(past: Past) -> int:
    """FIFO: first in, first out, however often it was used."""
    return past.born


def fewest_uses_deepest(past: Past) -> tuple[int, int]:
    """Length-aware, as in Mooncake's comparison (Qin and others, FAST '25): later blocks of long requests first."""
    return past.uses, -past.depth


class LeavesByKey:
    """Of the candidates that nothing hangs on, the one with the smallest key; at equal keys the least recent. O(log n).

    Works for any key, because only leaves are in the heap. Entries that have become wrong stay there until they are
    popped or outnumber the others.
    """

    def __init__(self, key: Key, parent_of: ParentOf) -> None:
        self._key = key
        self._parent_of = parent_of
        self._past: dict[int, Past] = {}
        self._heap: list[tuple[Any, int, int]] = []
        self._clock = itertools.count(1)
        self._num_candidates = 0

    def __len__(self) -> int:
        return self._num_candidates

    def add(self, page_id: int) -> None:
        past = self._past_of(page_id)
        past.released, past.is_candidate = next(self._clock), True
        self._num_candidates += 1
        past.parent = self._parent_of(page_id)
        if past.parent is not None:
            self._past_of(past.parent).num_candidate_children += 1
        self._offer(page_id, past)

    def remove(self, page_id: int) -> None:
        past = self._past[page_id]
        past.is_candidate = False
        self._num_candidates -= 1
        self._leave_parent(past)

    def touch(self, page_id: int) -> None:
        self._past_of(page_id).uses += 1

    def forget(self, page_id: int) -> None:
        self._past.pop(page_id, None)

    def pop_victim(self) -> int:
        while True:
            _, released, page_id = heapq.heappop(self._heap)
            if self._is_current(released, page_id):
                self.remove(page_id)
                self.forget(page_id)
                return page_id

    def _past_of(self, page_id: int) -> Past:
        past = self._past.get(page_id)
        if past is not None:
            return past
        unknown = [page_id]
        while (parent := self._parent_of(unknown[-1])) is not None and parent not in self._past:
            unknown.append(parent)
        depth = 0 if parent is None else self._past[parent].depth + 1
        for page in reversed(unknown):
            self._past[page] = Past(next(self._clock), depth)
            depth += 1
        return self._past[page_id]

    def _leave_parent(self, past: Past) -> None:
        parent = None if past.parent is None else self._past.get(past.parent)
        if past.parent is None or parent is None:
            return
        parent.num_candidate_children -= 1
        self._offer(past.parent, parent)

    def _offer(self, page_id: int, past: Past) -> None:
        if not past.is_candidate or past.num_candidate_children:
            return
        heapq.heappush(self._heap, (self._key(past), past.released, page_id))
        if len(self._heap) > 2 * self._num_candidates + 64:
            self._heap = [entry for entry in set(self._heap) if self._is_current(*entry[1:])]
            heapq.heapify(self._heap)

    def _is_current(self, released: int, page_id: int) -> bool:
        past = self._past.get(page_id)
        is_leaf = past is not None and past.is_candidate and not past.num_candidate_children
        return is_leaf and past is not None and past.released == released
