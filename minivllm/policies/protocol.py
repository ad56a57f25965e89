"""What every cache design answers, so that one replay runs them all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

from minivllm.policies.access import Access


@runtime_checkable
class CacheDesign(Protocol):
    """A cache as one engine builds it, over ids alone. Every request is one `lookup`, and one `insert` when it ends."""

    def lookup(self, access: Access) -> int:
        """The request arrives: how many units of its prompt, from the first without a gap, need not be computed."""
        ...

    def insert(self, access: Access) -> None:
        """The request has ended: keep what it computed, as far as the design does. From now on it can be found."""
        ...

    def restart(self) -> None:
        """The server stops and starts again: forget what memory held. Counts go on."""
        ...

    def stats(self) -> Stats: ...


@dataclass(slots=True)
class Counts:
    """What a design counts as it goes, all in units of the traffic but the first and the last."""

    num_lookups: int = 0
    queried_units: int = 0
    found_units: int = 0
    inserted_units: int = 0  # became findable
    evicted_units: int = 0  # was findable, and given up for something else
    num_not_kept: int = 0  # requests that left nothing: too long for a slot, every slot busy, disk full

    def looked_up(self, access: Access, found_units: int) -> int:
        self.num_lookups += 1
        self.queried_units += len(access.unit_ids)
        self.found_units += found_units
        return found_units


@dataclass(frozen=True, slots=True)
class Stats:
    """`Counts`, and the state of this moment. `capacity_units` is None where nothing bounds the design."""

    num_lookups: int
    queried_units: int
    found_units: int
    inserted_units: int
    evicted_units: int
    num_not_kept: int
    capacity_units: int | None
    held_units: int
    unreachable_units: int = 0  # held, and found by nobody, because something before them is gone

    @classmethod
    def of(cls, counts: Counts, capacity_units: int | None, held_units: int, unreachable_units: int = 0) -> Stats:
        return cls(
            **asdict(counts),
            capacity_units=capacity_units,
            held_units=held_units,
            unreachable_units=unreachable_units,
        )


def check_positive(**values: float | None) -> None:
    """Raise ValueError, naming the field, for a size below 1. None means without bound."""
    for name, value in values.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}: give 1 or more")
