"""What one block costs, in bytes and in comparisons, as the cache grows. Seconds are for scripts/bench-policies.py."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import pytest

from minivllm.policies.access import Access
from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.exact_index import ExactPrefixIndex
from minivllm.policies.leaves_by_key import LeavesByKey

JUST_AFTER_THE_TABLES_GREW = 5_462  # where dicts have the most room to spare: two thirds of 2**13, and one


class Counted:
    """A key that counts how often it is compared."""

    comparisons = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: Counted) -> bool:
        Counted.comparisons += 1
        return self.value < other.value

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return isinstance(other, Counted) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


def comparisons_per_victim(num_pages: int) -> float:
    policy = LeavesByKey(lambda past: Counted(past.born * 7919 % 10_007), lambda page_id: None)
    for page_id in range(num_pages):
        policy.add(page_id)
    Counted.comparisons = 0
    for page_id in range(num_pages, num_pages + 100):
        policy.pop_victim()
        policy.add(page_id)
    return Counted.comparisons / 100


def test_finding_a_victim_takes_logarithmically_many_comparisons() -> None:
    few, many = comparisons_per_victim(500), comparisons_per_victim(8_000)
    assert few < 6 * math.log2(500)
    assert many < 6 * math.log2(8_000)


@pytest.mark.parametrize("block_units", [1, 16])
def test_a_block_costs_less_than_400_bytes_with_its_place_in_the_lru(block_units: int) -> None:
    tracemalloc.start()
    try:
        cache = BlockHashCache(None, block_units)
        for start in range(0, JUST_AFTER_THE_TABLES_GREW, 2):
            ids = tuple(range(start * block_units, (start + 2) * block_units))
            cache.insert(Access(ids, len(ids)))
        # Threads that other tests left behind allocate, too: only what the cache and its ids took is counted.
        ours = [tracemalloc.Filter(True, f"*/minivllm/{room}/*") for room in ("policies", "cache")]
        snapshot = tracemalloc.take_snapshot().filter_traces([*ours, tracemalloc.Filter(True, __file__)])
        num_bytes = sum(trace.size for trace in snapshot.traces)
    finally:
        tracemalloc.stop()
    assert num_bytes < 400 * cache.stats().held_units / block_units


def test_a_lookup_looks_no_further_than_the_first_block_that_is_not_there() -> None:
    index = ExactPrefixIndex(1)
    for page_id in range(1000):
        index.insert([page_id], page_id - 1 if page_id else None, page_id, None)
    seen: list[int] = []

    class Watched(list[int]):
        def __getitem__(self, place: Any) -> Any:
            return (seen.append(value) or value for value in super().__getitem__(place))  # type: ignore[func-returns-value]

    assert index.lookup(Watched((0, 1, 7777, 3, 4)), 5, None) == [0, 1]
    assert seen == [0, 1, 7777]


def test_ids_beyond_32_bits_are_ids_too() -> None:
    cache = BlockHashCache(None, block_units=2)
    wide, narrow = Access((2**40, 1), 2), Access((1, 2**32 - 1), 2)
    assert [cache.lookup(wide), cache.insert(wide), cache.lookup(wide), cache.lookup(narrow)] == [0, None, 2, 0]
    cache.insert(narrow)
    assert cache.lookup(narrow) == 2


def test_the_past_of_a_page_ends_with_it() -> None:
    policy = LeavesByKey(lambda past: past.uses, {2: 1, 1: None}.get)
    policy.add(2)
    policy.add(1)
    assert [policy.pop_victim(), policy.pop_victim()] == [2, 1]
    assert policy._past == {}
