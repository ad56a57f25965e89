"""Which block goes next, drawn with a handful of blocks, and that no policy ever strands one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.eviction import POLICIES
from minivllm.policies.leaves_by_key import LeavesByKey, fewest_uses
from minivllm.policies.radix import RadixCache
from minivllm.policies.segmented_lru import SegmentedLRU
from tests.policies.traffic_of import ask, found

KEEPING_PREFIXES = [name for name in POLICIES if name != "lru-head-first"]
PROMPTS = st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=30)


def survivors(eviction: str, room: int, *prompts: str) -> list[str]:
    """Prompts that are still found whole after all of them have been asked."""
    cache = BlockHashCache(room, eviction=eviction)
    found(cache, *prompts)
    return [prompt for prompt in dict.fromkeys(prompts) if cache.lookup(ask(prompt)) == len(prompt)]


def test_lru_keeps_what_was_used_last() -> None:
    assert survivors("lru", 2, "a", "b", "a", "c") == ["a", "c"]


def test_fifo_keeps_what_came_last_however_often_the_first_was_used() -> None:
    assert survivors("fifo", 2, "a", "b", "a", "a", "c") == ["b", "c"]


def test_fifo_waits_with_a_block_on_which_a_younger_one_hangs() -> None:
    assert survivors("fifo", 3, "a", "b", "ab", "c") == ["a", "ab", "c"]  # a is the oldest, and b the oldest leaf


def test_lfu_keeps_what_was_used_most() -> None:
    assert survivors("lfu", 2, "a", "a", "b", "c") == ["a", "c"]


def test_lfu_evicts_the_least_recent_of_those_used_equally_often() -> None:
    assert survivors("lfu", 2, "a", "b", "c") == ["b", "c"]


def test_length_evicts_the_later_blocks_of_those_used_equally_often() -> None:
    assert survivors("length", 4, "x", "abc", "y") == ["x", "y"]  # c went, although x is older
    assert survivors("lru", 4, "x", "abc", "y") == ["abc", "y"]


def test_a_scan_does_not_flush_what_came_back() -> None:
    once_through = list("klmnopq")
    for name in ("scan", "segmented"):
        assert "a" in survivors(name, 3, "a", "a", *once_through)
    assert "a" not in survivors("lru", 3, "a", "a", *once_through)


def test_what_came_back_longest_ago_makes_room_for_what_came_back_since() -> None:
    policy = SegmentedLRU(protected_share=0.5)
    for page_id in (1, 2, 3):
        policy.touch(page_id)
        policy.add(page_id)
    policy.add(4)  # used once; of four candidates two may be protected, so 1 falls back behind 4
    assert [policy.pop_victim() for _ in range(4)] == [4, 1, 2, 3]
    assert len(policy) == 0


def test_head_first_eviction_leaves_blocks_that_nobody_finds() -> None:
    cache = BlockHashCache(4, eviction="lru-head-first")
    assert found(cache, "abcd", "x", "abcd") == [0, 0, 0]
    tail_first = BlockHashCache(4)
    assert found(tail_first, "abcd", "x", "abcd") == [0, 0, 3]
    stranded = BlockHashCache(4, eviction="lru-head-first")
    found(stranded, "abcd", "x")
    assert stranded.stats().unreachable_units == 3


def test_blocks_that_lost_their_parent_are_never_found_behind_another() -> None:
    cache = BlockHashCache(3, eviction="lru-head-first")
    found(cache, "abc", "x")
    assert cache.lookup(ask("xbc")) == 1


@pytest.mark.parametrize("seed", range(200))
def test_two_of_three_blocks_are_found_again_after_one_was_needed(seed: int) -> None:
    prompt = f"{seed:03}"
    for eviction in KEEPING_PREFIXES:
        cache = BlockHashCache(3, eviction=eviction)
        assert found(cache, prompt, "x", prompt) == [0, 0, 2], eviction


@pytest.mark.parametrize("eviction", KEEPING_PREFIXES)
@settings(max_examples=60, deadline=None)
@given(prompts=PROMPTS, room=st.integers(1, 8))
def test_no_block_is_evicted_before_what_hangs_on_it(eviction: str, prompts: list[str], room: int) -> None:
    cache = BlockHashCache(room, eviction=eviction)
    for prompt in prompts:
        found(cache, prompt)
        stats = cache.stats()
        assert stats.unreachable_units == 0
        assert stats.inserted_units - stats.evicted_units == stats.held_units <= room


@pytest.mark.parametrize("eviction", KEEPING_PREFIXES)
@settings(max_examples=60, deadline=None)
@given(prompts=PROMPTS, room=st.integers(1, 8), page_units=st.integers(1, 2))
def test_no_node_of_a_radix_tree_is_evicted_before_its_branches(
    eviction: str, prompts: list[str], room: int, page_units: int
) -> None:
    radix = RadixCache(room, page_units, eviction)
    for prompt in prompts:
        found(radix, prompt)
        nodes = radix.nodes()
        assert all(node.parent is None or node.parent in nodes for node in nodes)
        assert all(node.siblings[node.ids[:page_units]] is node for node in nodes)
        assert radix.stats().held_units == sum(len(node.ids) for node in nodes) <= room


def test_wrong_entries_in_the_heap_never_outnumber_the_right_ones_for_long() -> None:
    policy = LeavesByKey(fewest_uses, {1: None, 2: None}.get)
    policy.add(1)
    policy.add(2)
    for _ in range(1000):
        policy.remove(2)
        policy.add(2)
    assert len(policy._heap) <= 2 * len(policy) + 64
    assert [policy.pop_victim(), policy.pop_victim()] == [1, 2]
