"""The numbers of `minivllm replay`: one design in detail, or every design at every capacity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from minivllm.policies.access import Access
from minivllm.policies.designs import EVICTING, Setup
from minivllm.policies.optimum import Future
from minivllm.policies.replay import Replayed, replay_each
from minivllm.policies.reuse_distance import ReuseDistance
from minivllm.policies.sizing import KVShape, capacity_gib, saving
from minivllm.policies.source import Source

PERCENTILES = (10, 50, 90, 99)
CAPACITY_FACTORS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)


@dataclass(frozen=True, slots=True)
class Sizing:
    """What the user knows of a model and a machine; either may be missing."""

    shape: KVShape | None = None
    prefill_tokens_per_s: float | None = None


def measure(source: Source, setup: Setup, delay_s: float = 0.0, sizing: Sizing | None = None) -> dict[str, Any]:
    """One design under the traffic, and the traffic's reuse distances. One pass, and one more for Belady's optimum."""
    reuse = ReuseDistance(setup.block_units)
    replayed = _replay(source, [setup], delay_s, reuse)[setup]
    row = _row(setup, replayed, sizing or Sizing())
    return {**row, "publication_delay_s": delay_s, "reuse_distance": _distances(reuse)}


def sweep(source: Source, setup: Setup, delay_s: float = 0.0, sizing: Sizing | None = None) -> list[dict[str, Any]]:
    """Every design with every eviction, from 1/64 of the capacity of `setup` to twice as much: a row for each."""
    setups = list(_setups(setup, has_delay=delay_s > 0))
    replayed = _replay(source, setups, delay_s, None)
    return [_row(one, replayed[one], sizing or Sizing()) for one in setups]


def _setups(setup: Setup, has_delay: bool) -> Iterator[Setup]:
    capacities = {int(setup.capacity_units * factor) for factor in CAPACITY_FACTORS}
    for one in setup.of_every_kind():
        for capacity in sorted(capacities):
            if capacity >= one.smallest_units and not (has_delay and one.needs_future):
                yield replace(one, capacity_units=capacity)


def _replay(source: Source, setups: list[Setup], delay_s: float, reuse: ReuseDistance | None) -> dict[Setup, Replayed]:
    needs_future = any(setup.needs_future for setup in setups)
    if needs_future and delay_s:
        raise ValueError("eviction belady is a bound for publication delay 0: leave out one of the two")
    future = Future(source.read("reading the future"), setups[0].block_units) if needs_future else None
    traffic = _measuring(source.read("replaying"), reuse) if reuse else source.read("replaying")
    return replay_each(traffic, {setup: setup.build(future) for setup in setups}, delay_s)


def _measuring(traffic: Iterable[Access], reuse: ReuseDistance) -> Iterator[Access]:
    for access in traffic:
        reuse.used(access)
        yield access


def _row(setup: Setup, replayed: Replayed, sizing: Sizing) -> dict[str, Any]:
    row = {
        **replayed.as_record(),
        "design": setup.design,
        "eviction": setup.eviction if setup.design in EVICTING else None,
        "capacity_blocks": setup.capacity_units,
    }
    if sizing.shape is not None:
        row["capacity_gib"] = capacity_gib(setup.capacity_units, replayed.tally.unit_tokens, sizing.shape)
    if sizing.prefill_tokens_per_s is not None:
        row |= asdict(saving(replayed.tally, sizing.prefill_tokens_per_s))
    return row


def _distances(reuse: ReuseDistance) -> dict[str, Any]:
    """In blocks of the design. `None` where no block was used twice."""
    return {
        "block_units": reuse.block_units,
        "first_uses": reuse.num_first_uses,
        "reuses": reuse.num_uses.total(),
        "percentiles": {f"p{percent}": reuse.percentile(percent) for percent in PERCENTILES},
        "histogram": [{"from": lowest, "reuses": count} for lowest, count in reuse.histogram()],
    }
