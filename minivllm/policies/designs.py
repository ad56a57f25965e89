"""Every design by name, built for the same room, so that one traffic can tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.eviction import POLICIES
from minivllm.policies.files import FileCache
from minivllm.policies.optimum import Future, OptimalCache
from minivllm.policies.protocol import CacheDesign
from minivllm.policies.radix import RadixCache
from minivllm.policies.slots import SlotCache
from minivllm.policies.whole_caches import WholeCacheLRU

BELADY = "belady"
EVICTIONS = (*POLICIES, BELADY)


@dataclass(frozen=True, slots=True)
class Setup:
    """A design and its settings. Sizes are in units of the traffic; a slot gets an equal share of the capacity."""

    design: str
    eviction: str = "lru"
    capacity_units: int = 10_000
    block_units: int = 1
    page_units: int = 1
    num_slots: int = 4
    similarity: float = 0.1
    max_caches: int | None = None

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise ValueError(f"design is {self.design!r}: choose one of {', '.join(DESIGNS)}")
        if self.eviction not in EVICTIONS:
            raise ValueError(f"eviction is {self.eviction!r}: choose one of {', '.join(EVICTIONS)}")
        if self.eviction == BELADY and self.design != "block-hash":
            raise ValueError(f"eviction belady is a bound for blocks: use it with design block-hash, not {self.design}")
        if self.eviction != "lru" and self.design not in EVICTING:
            raise ValueError(f"design {self.design} throws away what its engine does: leave out eviction")
        if self.capacity_units < self.smallest_units:
            needed = f"{self.design} needs {self.smallest_units} for one place"
            raise ValueError(f"capacity is {self.capacity_units} of the traffic's blocks: {needed}")

    @property
    def smallest_units(self) -> int:
        """The smallest capacity that holds anything."""
        smallest = {"block-hash": self.block_units, "engine": self.block_units, "radix": self.page_units}
        return {**smallest, "slot": self.num_slots}.get(self.design, 1)

    @property
    def needs_future(self) -> bool:
        return self.eviction == BELADY

    def build(self, future: Future | None = None) -> CacheDesign:
        """The design, empty. Belady's optimum needs the future of the traffic."""
        if not self.needs_future:
            return DESIGNS[self.design](self)
        if future is None:
            raise ValueError("eviction belady needs the traffic's future: read it first")
        return OptimalCache(self.capacity_units // self.block_units, future)

    def of_every_kind(self) -> list[Setup]:
        """Every design with every eviction it can have, else as this one."""
        by_blocks = [name for name in EVICTIONS if name != "lru-head-first"]
        setups = [replace(self, design="block-hash", eviction=name) for name in by_blocks]
        return [*setups, *(replace(self, design=name, eviction="lru") for name in DESIGNS if name not in _BY_BLOCKS)]


def _block_hash(setup: Setup) -> CacheDesign:
    return BlockHashCache(setup.capacity_units // setup.block_units, setup.block_units, setup.eviction)


def _engine(setup: Setup) -> CacheDesign:
    num_blocks = setup.capacity_units // setup.block_units
    return BlockHashCache(num_blocks, setup.block_units, setup.eviction, engine_index=True)


def _radix(setup: Setup) -> CacheDesign:
    return RadixCache(setup.capacity_units, setup.page_units, setup.eviction)


def _slots(setup: Setup) -> CacheDesign:
    return SlotCache(setup.num_slots, setup.capacity_units // setup.num_slots, setup.similarity)


def _whole_caches(setup: Setup) -> CacheDesign:
    return WholeCacheLRU(setup.max_caches, setup.capacity_units)


def _files(setup: Setup) -> CacheDesign:
    return FileCache(setup.capacity_units)


DESIGNS: dict[str, Callable[[Setup], CacheDesign]] = {
    "block-hash": _block_hash,  # vLLM
    "engine": _engine,  # minivllm: block-hash with the index that the engine runs on
    "radix": _radix,  # SGLang
    "slot": _slots,  # llama.cpp
    "whole-cache": _whole_caches,  # mlx_lm.server
    "file": _files,  # mlx-lm's prompt-cache files
}
_BY_BLOCKS = ("block-hash", "engine")
EVICTING = (*_BY_BLOCKS, "radix")
