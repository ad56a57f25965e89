"""Traffic through designs: what is counted, when things become findable, and how far apart uses are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.policies.access import Access
from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.replay import Replay, replay, replay_each
from minivllm.policies.reuse_distance import ReuseDistance
from minivllm.policies.slots import SlotCache
from tests.policies.traffic_of import ask, found

PROMPTS = st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=30)


def blocks(*ids: int, tokens: int) -> Access:
    return Access(ids, tokens, unit_tokens=512)


def test_a_hit_counts_only_along_an_unbroken_prefix() -> None:
    traffic = [blocks(1, 2, 3, tokens=1536), blocks(1, 9, 3, tokens=1536)]
    tally = replay(traffic, BlockHashCache(10)).tally
    assert (tally.hit_blocks, tally.num_blocks) == (1, 6)


def test_the_last_block_of_a_prompt_is_worth_the_tokens_it_has() -> None:
    twice = [blocks(1, 2, tokens=600)] * 2
    tally = replay(twice, BlockHashCache(10)).tally
    assert (tally.hit_ratio_blocks, tally.hit_ratio_tokens) == (2 / 4, 600 / 1200)
    assert tally.hit_tokens == 600  # not 1,024, and not 599


def test_without_requests_the_ratios_are_zero() -> None:
    tally = replay([], BlockHashCache(1)).tally
    assert (tally.hit_ratio_blocks, tally.hit_ratio_tokens) == (0, 0)


def test_what_is_computed_is_found_after_the_publication_delay_and_not_before() -> None:
    running = Replay(BlockHashCache(10), publication_delay_s=2.0)
    assert [running.arrive(ask("abc", at=at)) for at in (0.0, 1.0, 2.0)] == [0, 0, 3]


def test_without_delay_a_twin_at_the_same_moment_finds_everything() -> None:
    running = Replay(BlockHashCache(10))
    assert [running.arrive(ask("abc")), running.arrive(ask("abc"))] == [0, 3]


def test_with_delay_a_twin_takes_a_second_slot() -> None:
    slots = SlotCache(num_slots=2)
    replay([ask("abc"), ask("abc"), ask("abc", at=1.0)], slots, publication_delay_s=5.0)
    assert [len(slot.ids) for slot in slots.slots] == [3, 3]
    assert slots.stats().num_not_kept == 1  # the third found both busy


def test_one_request_sent_twice_at_a_time_takes_two_slots_and_gives_both_back() -> None:
    slots, twice = SlotCache(num_slots=2), ask("abc")
    replay([twice, twice], slots, publication_delay_s=5.0)
    assert [(len(slot.ids), slot.is_busy) for slot in slots.slots] == [(3, False), (3, False)]


def test_requests_end_in_the_order_of_their_arrival_and_the_last_ones_end_too() -> None:
    cache = BlockHashCache(3)
    replay([ask("abc", at=0.0), ask("xyz", at=0.5)], cache, publication_delay_s=1.0)
    assert [cache.lookup(ask("abc")), cache.lookup(ask("xyz"))] == [0, 3]


@pytest.mark.parametrize("delay_s", [-1.0, float("nan"), float("inf")])
def test_a_delay_is_a_number_of_seconds(delay_s: float) -> None:
    with pytest.raises(ValueError, match="publication_delay_s"):
        Replay(BlockHashCache(1), delay_s)


def test_many_designs_read_the_traffic_once_and_see_the_same() -> None:
    traffic = iter([ask("abc"), ask("abd")])
    replayed = replay_each(traffic, {"blocks": BlockHashCache(10), "slots": SlotCache(1)})
    assert {name: one.tally.hit_blocks for name, one in replayed.items()} == {"blocks": 2, "slots": 2}


def test_memory_does_not_grow_with_the_trace() -> None:
    running = Replay(BlockHashCache(4), publication_delay_s=2.5)
    for number in range(1000):
        running.arrive(ask(str(number), at=float(number)))
        assert len(running._unpublished) <= 3
    assert running.design.stats().held_units == 4


def test_a_reuse_distance_counts_the_other_blocks_used_since() -> None:
    reuse = ReuseDistance()
    for prompt in ("abc", "d", "abx"):
        reuse.used(ask(prompt))
    assert reuse.num_first_uses == 5  # a b c, d, x
    assert dict(reuse.num_uses) == {1: 1, 2: 1}  # a after d; b after d and a
    assert (reuse.percentile(50), reuse.percentile(100)) == (1, 2)


def test_blocks_of_other_salts_are_other_blocks() -> None:
    reuse = ReuseDistance()
    for salt in ("mine", "yours"):
        reuse.used(ask("ab", salt=salt))
    assert (reuse.num_first_uses, reuse.num_uses.total()) == (4, 0)
    assert reuse.percentile(50) is None


@settings(max_examples=60, deadline=None)
@given(prompts=PROMPTS, room=st.integers(1, 12))
def test_lru_finds_the_blocks_whose_distance_is_less_than_the_room(prompts: list[str], room: int) -> None:
    """As long as every request fits; distances below 16 are exact."""
    room = max([room, *map(len, prompts)])
    reuse = ReuseDistance()
    for prompt in prompts:
        reuse.used(ask(prompt))
    assert sum(found(BlockHashCache(room), *prompts)) == sum(
        n for distance, n in reuse.num_uses.items() if distance < room
    )


def test_long_distances_are_kept_to_within_an_eighth() -> None:
    reuse = ReuseDistance()
    reuse.used(ask("a"))
    reuse.used(Access(tuple(range(1000, 2000)), 1000))
    reuse.used(ask("a"))
    assert dict(reuse.num_uses) == {960: 1}
    assert reuse.histogram() == [(512, 1)]


def test_a_block_used_longer_ago_than_is_remembered_counts_as_new() -> None:
    reuse = ReuseDistance(max_blocks=2)
    for prompt in ("a", "b", "c", "a", "c"):
        reuse.used(ask(prompt))
    assert (reuse.num_first_uses, dict(reuse.num_uses)) == (4, {1: 1})
    assert len(reuse._last_use) == 2


def test_what_remembers_uses_does_not_grow_with_their_number() -> None:
    reuse = ReuseDistance()
    for number in range(10_000):
        reuse.used(ask("xyz"[number % 3]))
    assert len(reuse._uses._tree) < 1100
    assert dict(reuse.num_uses) == {2: 9_997}
