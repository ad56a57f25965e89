"""Slots: named places that each remember the last sequence they processed, as llama-server's do. No tensors.

A request runs in the slot it asks for (`id_slot`), else in the idle one whose memory it continues best, else in an
empty one, else in the one that has been idle for the longest time; without a slot when all are busy. In a slot it also
restores the partial page at the end of the sequence, when it goes on there. Full pages are nobody's: they stay cached,
are found from any slot, and may be evicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from minivllm.cache.manager import CacheManager
from minivllm.cache.partial_pages import PartialPage, num_common
from minivllm.request import Request, RequestError


class Slot:
    """`token_ids` are those that had KV when the last request ended; `request` is the one that runs here now."""

    def __init__(self, slot_id: int) -> None:
        self.slot_id = slot_id
        self.token_ids: tuple[int, ...] = ()
        self.salt: str | None = None
        self.request: Request | None = None
        self.last_use = 0
        self.last_request_id: str | None = None
        self.num_cached_tokens = 0
        self.num_computed_tokens = 0

    @property
    def is_busy(self) -> bool:
        return self.request is not None

    def num_common_tokens(self, request: Request) -> int:
        return num_common(self.token_ids, request.token_ids) if self.salt == request.cache_salt else 0

    def is_continued_by(self, request: Request) -> bool:
        """Whether at least half of the memory or half of the prompt is common.

        All chats of a model begin with the same few tokens of its template: those alone are no reason to forget one
        conversation for another while there are other slots (known fault SV-04).
        """
        num_tokens = self.num_common_tokens(request)
        return num_tokens > 0 and 2 * num_tokens >= min(len(self.token_ids), request.num_prompt_tokens)

    def remember(self, token_ids: Sequence[int], salt: str | None) -> None:
        self.token_ids, self.salt = tuple(token_ids), salt

    def forget(self) -> None:
        """An empty slot is the first to be used."""
        self.remember((), None)
        self.last_use = 0


class Slots:
    """All slots of an engine, and who is in them. The manager owns the books of their partial pages."""

    def __init__(self, manager: CacheManager, num_slots: int) -> None:
        self._manager = manager
        self._slot_of_request: dict[str, Slot] = {}
        self._num_uses = 0
        self.slots = [Slot(slot_id) for slot_id in range(num_slots)]

    def check(self, id_slot: object) -> None:
        """Raise `RequestError` unless this is a slot of ours, or None."""
        is_whole = isinstance(id_slot, int) and not isinstance(id_slot, bool)
        if id_slot is not None and not (is_whole and 0 <= id_slot < len(self.slots)):  # type: ignore[operator]
            there = f"0 to {len(self.slots) - 1}" if self.slots else "none"
            raise RequestError(f"id_slot={id_slot!r:.80} is no slot: there are {there}", param="id_slot")

    def must_wait(self, request: Request) -> bool:
        """Whether another request is in the slot that this one asks for."""
        if request.id_slot is None:
            return False
        return self.slots[request.id_slot].request not in (None, request)

    def try_admit(self, request: Request) -> bool:
        """Admit a request in its slot; False, with nothing changed, when it does not fit now."""
        slot = self._slot_of_request.get(request.request_id) or self._choose(request)
        if not self._manager.try_admit(request, None if slot is None else slot.slot_id):
            return False
        if slot is not None and not slot.is_busy:
            self._enter(slot, request)
        return True

    def leave(self, request: Request, remember: bool) -> None:
        """An ended request gives back its pages. Its slot remembers the sequence, or nothing when it failed."""
        slot = self._slot_of_request.pop(request.request_id, None)
        if slot is not None:
            slot.request = None
            slot.num_cached_tokens, slot.num_computed_tokens = (
                request.metrics.cached_tokens,
                request.metrics.computed_tokens,
            )
            if remember:
                self.remember(slot, request)
        self._manager.release(request)

    def remember(self, slot: Slot, request: Request) -> None:
        """Keep a sequence in an idle slot, with the partial page at its end."""
        self._use(slot)
        slot.remember(request.token_ids[: request.num_computed_tokens], request.cache_salt)
        self._manager.keep_partial(request, slot.slot_id)

    def partial_page(self, slot: Slot) -> PartialPage | None:
        return self._manager.partials.of(slot.slot_id)

    def held_pages(self, slot: Slot) -> list[int]:
        """Pages that hold the leading tokens of an idle slot's memory now, its partial page included."""
        partial = self.partial_page(slot)
        num_full_pages = len(slot.token_ids) // self._manager.page_size
        pages = list(self._manager.index.lookup(slot.token_ids, num_full_pages, slot.salt))
        return [*pages, partial.page_id] if partial is not None else pages

    def num_held_tokens(self, slot: Slot) -> int:
        """How many tokens of its memory a slot could restore now; of a busy one, how far its request has come."""
        if slot.request is not None:
            return slot.request.num_computed_tokens
        return min(len(self.held_pages(slot)) * self._manager.page_size, len(slot.token_ids))

    def erase(self, slot: Slot) -> int:
        """Forget an idle slot's sequence and drop its pages that nobody else holds; returns how many tokens it held.

        A page is held by a request, by a cached page or a partial page behind it, or by a slot that remembers it too.
        """
        num_tokens = self.num_held_tokens(slot)
        self._manager.give_up_partial(slot.slot_id)
        self._manager.forget(self._pages_of_nobody_else(slot))
        slot.forget()
        return num_tokens

    def reset(self, salt: str | None) -> None:
        """Every idle slot forgets and gives up its partial page; with a salt, those whose sequence has it."""
        for slot in self.slots:
            if not slot.is_busy and (salt is None or slot.salt == salt):
                self._manager.give_up_partial(slot.slot_id)
                slot.forget()

    def _choose(self, request: Request) -> Slot | None:
        if request.id_slot is not None:
            return self.slots[request.id_slot]
        idle = [slot for slot in self.slots if not slot.is_busy]
        continued = [slot for slot in idle if slot.is_continued_by(request)]
        if continued:
            return max(continued, key=lambda slot: slot.num_common_tokens(request))
        return min(idle, key=lambda slot: slot.last_use, default=None)

    def _enter(self, slot: Slot, request: Request) -> None:
        """What the slot remembered is over; its partial page is the request's by now, or of no use."""
        self._manager.give_up_partial(slot.slot_id)
        slot.forget()
        slot.request, slot.last_request_id = request, request.request_id
        self._slot_of_request[request.request_id] = slot

    def _use(self, slot: Slot) -> None:
        self._num_uses += 1
        slot.last_use = self._num_uses

    def _pages_of_nobody_else(self, slot: Slot) -> list[int]:
        """Children before their parents, up to the first page that somebody holds."""
        manager, pages = self._manager, self.held_pages(slot)
        num_shared = max((self._num_shared_pages(slot, other) for other in self.slots if other is not slot), default=0)
        num_children = Counter(manager.index.parent_of(page_id) for page_id in manager.index.page_ids())
        alone: list[int] = []
        for page_id in reversed(pages[num_shared:]):
            is_held = manager.pool.references(page_id) > 0 or manager.partials.slots_behind(page_id)
            if is_held or num_children[page_id] > (len(alone) > 0):
                break
            alone.append(page_id)
        return alone

    def _num_shared_pages(self, slot: Slot, other: Slot) -> int:
        same = other.salt == slot.salt
        return num_common(slot.token_ids, other.token_ids) // self._manager.page_size if same else 0
