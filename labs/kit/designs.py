"""Four engines' cache designs under one traffic, by the engines' names. The designs are in minivllm/policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minivllm.policies.access import Access
from minivllm.policies.optimum import Future
from minivllm.policies.replay import Tally, replay
from minivllm.policies.table import Room

ENGINES = {
    "vLLM: blocks of 16, by key": "block-hash",
    "SGLang: a tree, token by token": "radix",
    "llama-server: 4 slots": "slot",
    "mlx-lm: a file for each chat": "file",
}
BLOCK_TOKENS = 16


def found_by_engine(traffic: Iterable[Access], room: Room) -> dict[str, Tally]:
    """What each design found of the prompts, all of them in the same room."""
    return {name: room.replay(traffic, design).tally for name, design in ENGINES.items()}


def capacity_rows(traffic: Iterable[Access], room: Room, capacities: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each design and capacity in tokens, as `sweep_figure` draws them."""
    return [
        {
            **room.replay(traffic, design, capacity_units=tokens).as_record(),
            "design": name.split(":")[0],
            "eviction": None,
            "capacity_blocks": tokens,
        }
        for name, design in ENGINES.items()
        for tokens in capacities
    ]


def found_by_eviction(traffic: Iterable[Access], room: Room, names: Sequence[str], tokens: int) -> dict[str, float]:
    """The share of prompt tokens that blocks find in room for so many tokens, by eviction policy."""
    future = Future(traffic, BLOCK_TOKENS)
    setups = {name: room.setup("block-hash", eviction=name, capacity_units=tokens) for name in names}
    return {name: replay(traffic, setup.build(future)).tally.hit_ratio_tokens for name, setup in setups.items()}
