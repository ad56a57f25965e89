"""A prefix per slot: llama.cpp's server."""

from __future__ import annotations

from dataclasses import dataclass

from minivllm.policies.access import Access
from minivllm.policies.prefixes import common_length
from minivllm.policies.protocol import Counts, Stats, check_positive


@dataclass(slots=True)
class Slot:
    """A place for one sequence. `last_used` counts requests; 0 is never."""

    ids: tuple[int, ...] = ()
    salt: str | None = None
    last_used: int = 0
    is_busy: bool = False


class SlotCache:
    """N slots, each remembering the last sequence it processed, prompt and answer.

    Models llama-server (tools/server/server-context.cpp, `get_available_slot`; options --parallel, --ctx-size,
    --slot-prompt-similarity 0.1) without its second tier, --cache-ram. Of the idle slots it takes the one whose
    sequence shares the longest prefix with the prompt, when that is more than `similarity` of the prompt; else the
    least recently used. Whatever the chosen slot shares with the prompt is reused, and the rest of it overwritten:

        two slots, similarity 0.1       a b c d     slot 0 [a b c d]      slot 1 [       ]
                                        k l m n     slot 0 [a b c d]      slot 1 [k l m n]
                                        a b x y     slot 0 [a b x y]      2 found; c d is lost

    What it loses: the end of one conversation whenever another that begins alike takes its slot, and everything when
    there are more conversations than slots. Even unbounded slots keep one sequence each, and copies of what they share.

    A request longer than a slot's context is refused and changes nothing. A slot is busy from `lookup` to `insert`; a
    request that finds none idle is computed without one (llama-server lets it wait). llama-server knows no salt: here
    nothing is found across salts, so that every design answers the same question.
    """

    def __init__(self, num_slots: int = 4, context_units: int | None = None, similarity: float = 0.1) -> None:
        check_positive(num_slots=num_slots, context_units=context_units)
        if not 0 <= similarity <= 1:
            raise ValueError(f"similarity is {similarity}: give a share of the prompt from 0 to 1")
        self.num_slots, self.context_units, self.similarity = num_slots, context_units, similarity
        self._counts = Counts()
        self._time = 0
        self.restart()

    def restart(self) -> None:
        self.slots = [Slot() for _ in range(self.num_slots)]
        self._running: list[tuple[Access, Slot]] = []  # requests between their lookup and their insert

    def lookup(self, access: Access) -> int:
        is_refused = self.context_units is not None and len(access.unit_ids) > self.context_units
        slot = None if is_refused else self._choose(access)
        if slot is None:
            return self._counts.looked_up(access, 0)
        slot.is_busy = True
        self._running.append((access, slot))
        return self._counts.looked_up(access, self._shared(slot, access))

    def insert(self, access: Access) -> None:
        place = next((place for place, (running, _) in enumerate(self._running) if running is access), None)
        if place is None:
            self._counts.num_not_kept += 1
            return
        _, slot = self._running.pop(place)
        self._time += 1
        kept = access.kept_ids[: self.context_units]
        shared = common_length(slot.ids, kept) if slot.salt == access.salt else 0
        self._counts.evicted_units += len(slot.ids) - shared
        self._counts.inserted_units += len(kept) - shared
        slot.ids, slot.salt, slot.last_used, slot.is_busy = kept, access.salt, self._time, False

    def stats(self) -> Stats:
        capacity = None if self.context_units is None else self.num_slots * self.context_units
        return Stats.of(self._counts, capacity, sum(len(slot.ids) for slot in self.slots))

    def _choose(self, access: Access) -> Slot | None:
        idle = [slot for slot in self.slots if not slot.is_busy]
        if not idle:
            return None
        most_alike = max(idle, key=lambda slot: self._shared(slot, access))
        if self._shared(most_alike, access) > self.similarity * len(access.unit_ids):
            return most_alike
        return min(idle, key=lambda slot: slot.last_used)

    def _shared(self, slot: Slot, access: Access) -> int:
        return common_length(slot.ids, access.unit_ids) if slot.salt == access.salt else 0
