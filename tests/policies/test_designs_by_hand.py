"""Each design on a few letters: what it finds, what it keeps, what it loses. The drawings of the docstrings."""

from __future__ import annotations

import pytest

from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.designs import DESIGNS, EVICTIONS, Setup
from minivllm.policies.files import FileCache
from minivllm.policies.protocol import CacheDesign
from minivllm.policies.radix import RadixCache
from minivllm.policies.slots import SlotCache
from minivllm.policies.whole_caches import WholeCacheLRU
from tests.policies.traffic_of import ask, found


def held(slots: SlotCache) -> list[str]:
    return ["".join(map(chr, slot.ids)) for slot in slots.slots]


def branches(radix: RadixCache) -> set[str]:
    return {"".join(map(chr, node.ids)) for node in radix.nodes()}


@pytest.mark.parametrize(
    ("design", "counts"),
    [
        (BlockHashCache(None, block_units=2), [0, 2, 4]),
        (RadixCache(None), [0, 2, 4]),
        (SlotCache(num_slots=2), [0, 2, 2]),
        (WholeCacheLRU(max_caches=2), [0, 2, 4]),
        (FileCache(), [0, 0, 4]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_five_designs_on_the_three_requests_of_the_readme(design: CacheDesign, counts: list[int]) -> None:
    assert found(design, "abcd", "abxy", "abcd") == counts


@pytest.mark.parametrize("engine_index", [False, True])
def test_a_block_hash_cache_finds_whole_blocks_and_evicts_the_deepest_of_the_least_recent_request(
    engine_index: bool,
) -> None:
    cache = BlockHashCache(3, 2, engine_index=engine_index)
    assert found(cache, "abcde", "abxy") == [0, 2]
    assert cache.stats().held_units == 6  # ab, abcd, abxy; e fills no block
    assert found(cache, "kl") == [0]
    assert cache.stats().evicted_units == 2
    assert [cache.lookup(ask(prompt)) for prompt in ("abcd", "abxy", "kl")] == [2, 4, 2]


def test_a_block_hash_cache_keeps_the_head_of_a_request_that_is_longer_than_itself() -> None:
    assert found(BlockHashCache(2), "abcd", "abcd", "xbcd") == [0, 2, 0]


def test_equal_blocks_behind_different_prefixes_are_different_blocks() -> None:
    assert found(BlockHashCache(None, 2), "aazz", "bbzz", "zzzz", "zzaa") == [0, 0, 0, 2]


def test_an_answer_is_kept_without_its_last_token_which_was_never_fed_back() -> None:
    for cache in (BlockHashCache(None), RadixCache(None), SlotCache(1), WholeCacheLRU()):
        assert found(cache, ask("ab", "cd"), "abcd") == [0, 3], type(cache).__name__


def test_slots_take_the_most_alike_and_overwrite_its_end() -> None:
    slots = SlotCache(num_slots=2, similarity=0.1)
    assert found(slots, "abcd", "klmn") == [0, 0]
    assert held(slots) == ["abcd", "klmn"]
    assert found(slots, "abxy") == [2]
    assert held(slots) == ["abxy", "klmn"]
    assert slots.stats().evicted_units == 2  # c d


def test_a_slot_that_is_not_alike_enough_is_taken_only_as_the_least_recent() -> None:
    slots = SlotCache(num_slots=2, similarity=0.5)
    assert found(slots, "abcd", "klmn", "abxy") == [0, 0, 2]  # 2 of 4 is not more than half: slot 0 as the oldest
    assert found(slots, "klxy") == [2]  # slot 1, the oldest now, is what it would have liked
    assert held(slots) == ["abxy", "klxy"]
    assert found(slots, "klzz", "abxy") == [0, 0]  # slot 0, the oldest, was a b x y; and then slot 1


def test_a_request_longer_than_a_slots_context_is_refused_and_changes_nothing() -> None:
    slots = SlotCache(num_slots=1, context_units=3)
    assert found(slots, "abc", "abcd", "abc") == [0, 0, 3]
    assert slots.stats().num_not_kept == 1


def test_a_busy_slot_helps_nobody_else() -> None:
    slots = SlotCache(num_slots=1)
    found(slots, "abc")
    first, second = ask("abcd"), ask("abce")
    assert (slots.lookup(first), slots.lookup(second)) == (3, 0)
    slots.insert(first)
    slots.insert(second)
    assert held(slots) == ["abcd"]
    assert slots.stats().num_not_kept == 1


def test_a_radix_tree_splits_where_two_sequences_part_and_evicts_whole_leaves() -> None:
    radix = RadixCache(capacity_units=5)
    assert found(radix, "abcd", "abx") == [0, 2]
    assert branches(radix) == {"ab", "cd", "x"}
    assert found(radix, "k") == [0]
    assert branches(radix) == {"ab", "x", "k"}
    assert (radix.stats().held_units, radix.stats().evicted_units) == (4, 2)


def test_a_radix_tree_of_larger_pages_parts_at_page_boundaries() -> None:
    radix = RadixCache(None, page_units=2)
    assert found(radix, "abcdef", "abcxyz", "abcdez") == [0, 2, 4]
    assert branches(radix) == {"ab", "cd", "ef", "cxyz", "ez"}


def test_a_lookup_in_a_radix_tree_changes_nothing() -> None:
    radix = RadixCache(None)
    found(radix, "abcd")
    assert radix.lookup(ask("abx")) == 2
    assert branches(radix) == {"abcd"}


def test_a_radix_tree_keeps_as_much_of_a_long_request_as_fits() -> None:
    assert found(RadixCache(5, page_units=2), "abcdefgh", "abcdefgh") == [0, 4]


def test_a_file_is_used_whole_or_not_at_all_and_survives_a_restart() -> None:
    files = FileCache()
    requests = [ask(prompt, session="s1") for prompt in ("abcd", "abcdef", "abx")]
    assert found(files, *requests) == [0, 4, 0]
    files.restart()
    assert files.lookup(requests[1]) == 4
    assert files.lookup(ask("abcdef", session="s2")) == 0


def test_a_full_disk_refuses_a_file_until_one_is_deleted() -> None:
    files = FileCache(capacity_units=6)
    assert files.save((None, "s1"), (1, 2, 3, 4))
    assert not files.save((None, "s2"), (5, 6, 7))
    assert files.save((None, "s1"), (1, 2, 3))
    assert files.save((None, "s2"), (5, 6, 7))
    files.delete((None, "s1"))
    assert files.stats().held_units == 3


def test_whole_caches_hold_what_they_share_twice_and_drop_their_own_prefixes() -> None:
    caches = WholeCacheLRU(max_caches=2)
    assert found(caches, "abc", "abcd") == [0, 3]
    assert caches.stats().held_units == 4
    assert found(caches, "abx") == [2]
    assert caches.stats().held_units == 7
    assert found(caches, "k") == [0]
    assert caches.caches() == [ask("abx").unit_ids, ask("k").unit_ids]


def test_a_hit_makes_a_whole_cache_recent() -> None:
    caches = WholeCacheLRU(max_caches=2)
    found(caches, "a", "b")
    assert caches.lookup(ask("ax")) == 1
    found(caches, "c")
    assert [caches.lookup(ask(prompt)) for prompt in ("a", "b", "c")] == [1, 0, 1]


def test_a_prefix_of_one_token_is_a_prefix() -> None:
    assert found(WholeCacheLRU(), "g", "ghi") == [0, 1]


def test_whole_caches_are_thrown_away_until_the_rest_fits() -> None:
    caches = WholeCacheLRU(max_caches=None, capacity_units=5)
    assert found(caches, "ab", "cd", "efgh", "ab", "cd") == [0, 0, 0, 0, 0]
    assert caches.stats().held_units == 4
    assert found(caches, "uvwxyz") == [0]  # too long: it throws itself away, too
    assert caches.caches() == []


@pytest.mark.parametrize("name", DESIGNS)
def test_nothing_is_found_across_salts_and_all_but_files_forget_at_a_restart(name: str) -> None:
    design = Setup(name, capacity_units=64).build()
    mine, yours = ask("abcd", salt="mine"), ask("abcd", salt="yours")
    assert found(design, mine, yours, mine, ask("abcd"), ask("abcd", salt="")) == [0, 0, 4, 0, 0]
    design.restart()
    assert design.lookup(mine) == (4 if name == "file" else 0)


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_counts_what_it_was_asked_and_an_empty_prompt_harms_none(name: str) -> None:
    design = Setup(name, capacity_units=64).build()
    assert isinstance(design, CacheDesign)
    found(design, "abcd", "", "abcd")
    stats = design.stats()
    assert (stats.num_lookups, stats.queried_units, stats.found_units) == (3, 8, 4)
    assert stats.held_units == stats.inserted_units - stats.evicted_units


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"design": "trie"}, "design is 'trie'"),
        ({"design": "radix", "eviction": "belady"}, "belady is a bound for blocks"),
        ({"design": "slot", "eviction": "lfu"}, "leave out eviction"),
        ({"design": "slot", "capacity_units": 3}, "slot needs 4"),
        ({"design": "block-hash", "block_units": 16, "capacity_units": 15}, "needs 16 for one place"),
        ({"design": "block-hash", "eviction": "random"}, f"one of {', '.join(EVICTIONS)}"),
    ],
)
def test_a_setup_that_cannot_be_says_what_would_be_right(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Setup(**wrong)  # type: ignore[arg-type]


def test_a_radix_tree_refuses_to_evict_head_first() -> None:
    with pytest.raises(ValueError, match="cannot evict head-first"):
        RadixCache(4, eviction="lru-head-first")
