"""Numbers of pages, told apart by precision. No tensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """`head`: pages of the first `quantized_kv_start` tokens, in full precision; `body`: all others."""

    head: int = 0
    body: int = 0

    def __add__(self, other: Room) -> Room:
        return Room(self.head + other.head, self.body + other.body)

    def __sub__(self, other: Room) -> Room:
        return Room(self.head - other.head, self.body - other.body)

    def covers(self, needed: Room) -> bool:
        return needed.head <= self.head and needed.body <= self.body

    @property
    def num_pages(self) -> int:
        return self.head + self.body

    def floored(self) -> Room:
        """No less than nothing."""
        return Room(max(0, self.head), max(0, self.body))


def room_between(first: int, last: int, num_head_pages: int) -> Room:
    """What pages number `first` to `last - 1` of one sequence take."""
    num_pages = max(0, last - first)
    head = max(0, min(last, num_head_pages) - min(first, num_head_pages))
    return Room(head, num_pages - head)
