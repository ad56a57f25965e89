"""What is true of any traffic: nobody beats Belady, and without bounds the tree and the blocks find all there is."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.policies.access import Access
from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.designs import EVICTIONS, Setup
from minivllm.policies.optimum import Future, OptimalCache
from minivllm.policies.prefixes import common_length
from minivllm.policies.protocol import CacheDesign
from minivllm.policies.radix import RadixCache
from minivllm.policies.slots import SlotCache
from minivllm.policies.whole_caches import WholeCacheLRU
from tests.policies.traffic_of import ask, found

REQUESTS = st.builds(
    ask, st.text("ab", min_size=1, max_size=5), st.text("ab", max_size=4), salt=st.sampled_from([None, "s"])
)
PROMPTS_ONLY = st.builds(ask, st.text("ab", min_size=1, max_size=4))
TRAFFIC = st.lists(REQUESTS, min_size=1, max_size=25)


def ideal(traffic: list[Access]) -> list[int]:
    """For each request the longest prefix that any earlier one has computed."""
    return [
        max((common_length(e.kept_ids, r.unit_ids) for e in traffic[:n] if e.salt == r.salt), default=0)
        for n, r in enumerate(traffic)
    ]


def best_by_trying_everything(traffic: list[Access], room: int) -> int:
    """Found blocks of the best of all sequences of choices: after each request any blocks of what was there and what
    the request computed may stay."""
    best: dict[frozenset[tuple[int, ...]], int] = {frozenset(): 0}
    for access in traffic:
        asked = [access.unit_ids[: end + 1] for end in range(len(access.unit_ids))]
        computed = [access.kept_ids[: end + 1] for end in range(len(access.kept_ids))]
        choices: dict[frozenset[tuple[int, ...]], int] = {}
        for state, so_far in best.items():
            hits = so_far + sum(1 for _ in itertools.takewhile(state.__contains__, asked))
            for kept in itertools.combinations({*state, *computed}, min(room, len({*state, *computed}))):
                choices[frozenset(kept)] = max(hits, choices.get(frozenset(kept), 0))
        best = choices
    return max(best.values())


def optimum(traffic: list[Access], room: int, block_units: int = 1) -> int:
    design = OptimalCache(room, Future(traffic, block_units))
    return sum(found(design, *traffic))


def test_belady_keeps_what_comes_back_and_does_not_let_in_what_never_does() -> None:
    traffic = [ask(prompt) for prompt in ("ab", "c", "ab")]
    assert found(OptimalCache(2, Future(traffic)), *traffic) == [0, 0, 2]
    assert found(BlockHashCache(2), *traffic) == [0, 0, 1]


def test_belady_drops_the_deepest_of_what_comes_back_together() -> None:
    traffic = [ask(prompt) for prompt in ("abc", "x", "abc")]
    assert found(OptimalCache(2, Future(traffic)), *traffic) == [0, 0, 2]


def test_belady_refuses_traffic_that_is_not_the_future_it_read() -> None:
    design = OptimalCache(2, Future([ask("ab")]))
    with pytest.raises(ValueError, match="request 0 is not the one"):
        found(design, "abc")


@settings(max_examples=60, deadline=None)
@given(traffic=st.lists(PROMPTS_ONLY, min_size=1, max_size=6), room=st.integers(1, 3))
def test_belady_is_as_good_as_the_best_of_all_choices(traffic: list[Access], room: int) -> None:
    assert optimum(traffic, room) == best_by_trying_everything(traffic, room)


@settings(max_examples=60, deadline=None)
@given(traffic=st.lists(REQUESTS.filter(lambda r: len(r.kept_ids) < 5), min_size=1, max_size=5), room=st.integers(1, 2))
def test_nobody_beats_belady_with_answers_either(traffic: list[Access], room: int) -> None:
    traffic = [Access(r.unit_ids, r.num_input_tokens, r.output_ids) for r in traffic]
    assert optimum(traffic, room) == best_by_trying_everything(traffic, room)


@settings(max_examples=60, deadline=None)
@given(traffic=TRAFFIC, room=st.integers(4, 12))
def test_no_design_and_no_policy_beats_belady(traffic: list[Access], room: int) -> None:
    bound = optimum(traffic, room)
    for setup in Setup("block-hash", capacity_units=room).of_every_kind():
        if not setup.needs_future:
            assert sum(found(setup.build(), *traffic)) <= bound, setup


@settings(max_examples=60, deadline=None)
@given(traffic=TRAFFIC, num_blocks=st.integers(1, 6))
def test_no_policy_beats_belady_in_blocks_of_two(traffic: list[Access], num_blocks: int) -> None:
    bound = optimum(traffic, num_blocks, block_units=2)
    for eviction in EVICTIONS[:-1]:
        assert sum(found(BlockHashCache(num_blocks, 2, eviction), *traffic)) <= bound, eviction


@settings(max_examples=60, deadline=None)
@given(traffic=TRAFFIC)
def test_without_bounds_blocks_and_tree_find_everything_and_slots_lose_some(traffic: list[Access]) -> None:
    best = ideal(traffic)
    for design in (BlockHashCache(None), BlockHashCache(None, engine_index=True), RadixCache(None)):
        assert found(design, *traffic) == best
    everything = sum(len(access.kept_ids) for access in traffic)
    assert found(OptimalCache(everything, Future(traffic)), *traffic) == best
    assert found(WholeCacheLRU(max_caches=None), *traffic) == best
    assert all(count <= most for count, most in zip(found(SlotCache(4), *traffic), best, strict=True))


def test_even_slots_without_bounds_lose_the_end_that_another_overwrote() -> None:
    traffic = [ask(prompt) for prompt in ("abcd", "abxy", "abcd")]
    assert found(SlotCache(num_slots=100), *traffic) == [0, 2, 2]
    assert ideal(traffic) == [0, 2, 4]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10), lengths=st.lists(st.integers(0, 80), min_size=2, max_size=8))
def test_a_radix_tree_of_pages_of_16_finds_what_blocks_of_16_find(seed: int, lengths: list[int]) -> None:
    tree, blocks = RadixCache(None, page_units=16), BlockHashCache(None, block_units=16)
    traffic = [_shared_then_own(length, seed, number) for number, length in enumerate(lengths)]
    assert found(tree, *traffic) == found(blocks, *traffic)
    assert tree.stats().held_units == blocks.stats().held_units


@pytest.mark.parametrize("eviction", [name for name in EVICTIONS if name != "belady"])
@settings(max_examples=60, deadline=None)
@given(traffic=TRAFFIC, room=st.integers(1, 6), block_units=st.integers(1, 2))
def test_the_engines_index_and_the_exact_one_give_the_same_answers(
    eviction: str, traffic: list[Access], room: int, block_units: int
) -> None:
    ours, engines = (BlockHashCache(room, block_units, eviction, engine_index=is_it) for is_it in (False, True))
    assert found(ours, *traffic) == found(engines, *traffic)
    if eviction != "lru-head-first":
        assert ours.stats() == engines.stats()


def _shared_then_own(length: int, seed: int, number: int) -> Access:
    """Tokens that leave a common path at a place of their own."""
    ids = tuple(range(length)) + (1000 + (number + seed) % 3,) * (length % 37)
    return Access(ids, len(ids))


def test_every_design_is_a_cache_design() -> None:
    for setup in Setup("block-hash", capacity_units=8).of_every_kind():
        design = setup.build(Future([]) if setup.needs_future else None)
        assert isinstance(design, CacheDesign), setup
