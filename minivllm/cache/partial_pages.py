"""The partial pages at the ends of slots' sequences: kept, owned by one slot each, and given up when pages are needed.

    a slot's last sequence   [ a | b | c' ]      a and b are published: cached, anybody's, evictable
                                       ^ its partial page: 5 of 16 tokens, in no index, the slot's own

The next request of the slot takes the page over and goes on writing in it, if it goes on where the sequence stopped;
whoever leaves it in the middle of a page restores whole pages, as everybody does. A partial page hangs on the page
before it and goes with it, so whatever is kept here can be reached. No tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from minivllm.cache.room import Room, room_between
from minivllm.request import Request


@dataclass(frozen=True, slots=True)
class PartialPage:
    """`token_ids` are those whose KV it holds: at least one, fewer than a page. `depth`: full pages before it."""

    page_id: int
    parent_page_id: int | None
    depth: int
    salt: str | None
    token_ids: tuple[int, ...]
    since_s: float

    @classmethod
    def at_the_end_of(cls, request: Request, page_size: int, now_s: float) -> PartialPage:
        depth = request.num_computed_tokens // page_size
        token_ids = request.token_ids[depth * page_size : request.num_computed_tokens]
        parent_page_id = request.page_table[depth - 1] if depth else None
        return cls(request.page_table[depth], parent_page_id, depth, request.cache_salt, tuple(token_ids), now_s)

    def is_continued_by(self, request: Request, restored: Sequence[int], page_size: int) -> bool:
        """Whether a request that restores these pages goes on where this page stops, with at least one token more."""
        if not request.reads_prefix_cache or self.salt != request.cache_salt or self.depth != len(restored):
            return False
        start = self.depth * page_size
        end = start + len(self.token_ids)
        is_behind = self.parent_page_id == (restored[-1] if restored else None)
        return is_behind and tuple(request.token_ids[start:end]) == self.token_ids and len(request.token_ids) > end


class PartialPages:
    """At most one for each slot, by slot id; the one that was kept first in front."""

    def __init__(self) -> None:
        self._page_of_slot: dict[int, PartialPage] = {}

    def __len__(self) -> int:
        return len(self._page_of_slot)

    def __iter__(self) -> Iterator[tuple[int, PartialPage]]:
        return iter(list(self._page_of_slot.items()))

    def of(self, slot_id: int | None) -> PartialPage | None:
        return None if slot_id is None else self._page_of_slot.get(slot_id)

    def num_tokens_for(self, request: Request, restored: Sequence[int], slot_id: int | None, page_size: int) -> int:
        """How many tokens this slot's partial page saves a request that restores these pages."""
        page = self.of(slot_id)
        return len(page.token_ids) if page is not None and page.is_continued_by(request, restored, page_size) else 0

    def keep(self, slot_id: int, page: PartialPage) -> None:
        assert slot_id not in self._page_of_slot, f"slot {slot_id} has a partial page already"
        self._page_of_slot[slot_id] = page

    def take(self, slot_id: int) -> PartialPage:
        return self._page_of_slot.pop(slot_id)

    def slots_behind(self, page_id: int) -> list[int]:
        """Slots whose partial page hangs on this page."""
        return [slot_id for slot_id, page in self if page.parent_page_id == page_id]

    def room(self, num_head_pages: int) -> Room:
        """Pages that could be given up."""
        return sum((_room(page, num_head_pages) for _, page in self), Room())

    def first_with(self, needed: Room, num_head_pages: int) -> int:
        """The slot whose partial page goes first, of those that are the room for one page that is needed."""
        return next(slot_id for slot_id, page in self if _room(page, num_head_pages).covers(needed))


def num_common(some: Sequence[int], others: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    shorter = min(len(some), len(others))
    return next((at for at in range(shorter) if some[at] != others[at]), shorter)


def _room(page: PartialPage, num_head_pages: int) -> Room:
    return room_between(page.depth, page.depth + 1, num_head_pages)
