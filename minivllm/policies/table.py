"""The eight workloads by the five designs, all with the same bytes: how much of each prompt was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from minivllm.policies.access import Access
from minivllm.policies.designs import Setup
from minivllm.policies.radix import RadixCache
from minivllm.policies.replay import Replayed, replay
from minivllm.policies.sizing import KVShape
from minivllm.policies.traffic import WORKLOADS, Workload, make

SMOLLM2_135M = KVShape(num_layers=30, num_kv_heads=3, head_dim=64)
KV_CACHE_BYTES = 180 * 2**20  # 8,192 tokens of SmolLM2-135M in 16 bits

# Each design as its engine ships it: vLLM's blocks of 16, SGLang's pages of 1, four slots of a quarter each.
SETTINGS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {"slot": {"num_slots": 4}, "block-hash": {"block_units": 16}, "radix": {}, "whole-cache": {}, "file": {}}
)
RERANKED = "retrieval, re-ranked"


@dataclass(frozen=True)
class Row:
    """One workload: the share of its prompt tokens that each design found, and that an endless cache could."""

    name: str
    workload: Workload
    found: Mapping[str, float]
    ideal: float


@dataclass(frozen=True)
class Room:
    """The conditions that all designs share: bytes for keys and values, the model they belong to, the delay."""

    kv_cache_bytes: int = KV_CACHE_BYTES
    shape: KVShape = field(default=SMOLLM2_135M)
    publication_delay_s: float = 0.0

    def __post_init__(self) -> None:
        if self.capacity_tokens < 1:
            needed = f"one token of this model takes {self.shape.bytes_per_token:g}"
            raise ValueError(f"kv_cache_bytes is {self.kv_cache_bytes}: {needed}")

    @property
    def capacity_tokens(self) -> int:
        return int(self.kv_cache_bytes / self.shape.bytes_per_token)

    def setup(self, design: str, **changed: Any) -> Setup:
        return Setup(design, **{"capacity_units": self.capacity_tokens, **SETTINGS[design], **changed})

    def replay(self, traffic: Iterable[Access], design: str, **changed: Any) -> Replayed:
        """The traffic through a design in this room; `changed` are settings of its Setup."""
        return replay(traffic, self.setup(design, **changed).build(), self.publication_delay_s)


@dataclass(frozen=True)
class Table:
    room: Room
    seed: int
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def as_records(self) -> list[dict[str, Any]]:
        """Plain values, a row each: `workload`, the designs, `ideal`; shares of prompt tokens."""
        return [{"workload": row.name, **row.found, "ideal": row.ideal} for row in self.rows]

    def as_markdown(self) -> str:
        names = ["workload", *SETTINGS, "ideal"]
        lines = [names, ["---", *["---:"] * (len(names) - 1)]]
        lines += [[row.name, *[f"{row.found[name]:.2f}" for name in SETTINGS], f"{row.ideal:.2f}"] for row in self.rows]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", self.caption()])

    def caption(self) -> str:
        room = self.room
        return (
            f"Share of prompt tokens found. Every design has {room.kv_cache_bytes / 2**20:g} MiB for keys and values, "
            f"{room.capacity_tokens:,} tokens of {room.shape.bytes_per_token:g} bytes; what a request computed is "
            f"findable {room.publication_delay_s:g} s after its arrival. Ideal: single tokens, and nothing forgotten."
        )

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return self.as_markdown()


def make_table(room: Room | None = None, seed: int = 0) -> Table:
    """Every workload through every design; retrieval twice, with stable and with re-ranked passages."""
    room = room or Room()
    workloads = {name: make(name, seed) for name in WORKLOADS}
    named = []
    for name, workload in workloads.items():
        named.append((name, workload))
        if name == "retrieval":
            named.append((RERANKED, make(name, seed, is_reranked=True)))
    return Table(room, seed, tuple(_row(name, workload, room) for name, workload in named))


def _row(name: str, workload: Workload, room: Room) -> Row:
    found = {design: room.replay(workload, design).tally.hit_ratio_tokens for design in SETTINGS}
    return Row(name, workload, MappingProxyType(found), ideal_ratio(workload, room.publication_delay_s))


def ideal_ratio(traffic: Iterable[Access], publication_delay_s: float = 0.0) -> float:
    """What a cache finds that forgets nothing and compares token by token."""
    return replay(traffic, RadixCache(None), publication_delay_s).tally.hit_ratio_tokens
