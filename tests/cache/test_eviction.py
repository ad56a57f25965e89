"""Which page goes next. With "lru" the least recently used, and of one request the deepest.

With "scan" what nobody came back for, the newest first, so that a working set over capacity keeps a part of it.
"""

from __future__ import annotations

import random

import pytest

from labs.kit.toy_engine import ToyEngine
from minivllm.cache.eviction import BATCHES_PER_FOOTHOLD, POLICIES, ScanResistant, TailFirstLRU
from minivllm.config import CHOICES
from minivllm.protocols import PageUse

UNTRIED = PageUse(depth=0, num_restores=0)
TRIED = PageUse(depth=0, num_restores=1)


def test_every_policy_that_may_be_chosen_exists() -> None:
    assert set(POLICIES) == set(CHOICES["eviction"])


def test_pages_leave_in_the_order_in_which_they_came() -> None:
    queue = TailFirstLRU()
    for page in (3, 1, 2):
        queue.add(page, UNTRIED)
    assert queue.order() == [3, 1, 2]
    assert [queue.pop_victim() for _ in range(3)] == [3, 1, 2]
    assert len(queue) == 0


def test_a_page_in_use_again_is_no_candidate_and_comes_back_as_the_newest() -> None:
    queue = TailFirstLRU()
    for page in (1, 2, 3):
        queue.add(page, UNTRIED)
    queue.remove(1)
    assert queue.order() == [2, 3]
    queue.add(1, UNTRIED)
    assert queue.order() == [2, 3, 1]


def test_a_candidate_cannot_be_added_twice_or_removed_when_it_is_none() -> None:
    queue = TailFirstLRU()
    queue.add(1, UNTRIED)
    with pytest.raises(AssertionError, match="page 1 is a candidate already"):
        queue.add(1, UNTRIED)
    with pytest.raises(KeyError):
        queue.remove(2)


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
@pytest.mark.parametrize("seed", range(200))
def test_of_a_full_pool_the_deepest_page_goes_and_the_rest_is_still_found(seed: int, publication: str) -> None:
    draw = random.Random(seed)
    prompt = [draw.randrange(10, 1000) for _ in range(12)]
    engine = ToyEngine(num_pages=3, page_size=4, publication=publication, max_batched_tokens=draw.randint(1, 12))
    engine.ask(prompt)
    assert engine.pages == (0, 3, 0)
    engine.ask([draw.randrange(1, 10) for _ in range(4)])
    assert engine.counters.evicted_tokens == 4
    assert engine.hits(prompt) == 8
    assert engine.ask(prompt).metrics.cached_tokens == 8


def test_a_page_that_was_used_again_survives_one_that_was_not() -> None:
    engine = ToyEngine(num_pages=3, page_size=4)
    a, b, c = [1] * 4, [2] * 4, [3] * 4
    for prompt in (a, b, c):
        engine.ask(prompt)
    assert engine.ask([*a, 9]).metrics.cached_tokens == 4  # needs one page more: the oldest, b, goes
    assert [engine.hits(prompt) for prompt in (a, b, c)] == [4, 0, 4]


def test_a_shared_head_outlives_both_tails() -> None:
    engine = ToyEngine(num_pages=4, page_size=2)
    head = [1, 2, 3, 4]
    engine.ask([*head, 5, 6])
    engine.ask([*head, 7, 8])
    assert engine.pages == (0, 4, 0)
    engine.ask([9, 9, 8, 8])
    assert engine.hits([*head, 5, 6]) == engine.hits([*head, 7, 8]) == 4
    engine.ask([9, 9, 8, 8, 7, 7])
    assert engine.hits(head) == 2, "the fifth page took the deeper half of the head, not its beginning"


@pytest.mark.parametrize("eviction", POLICIES)
@pytest.mark.parametrize("seed", range(8))
def test_no_page_is_evicted_before_a_page_that_is_chained_to_it(seed: int, eviction: str) -> None:
    draw = random.Random(seed)
    engine = ToyEngine(num_pages=6, page_size=2, eviction=eviction)
    for _ in range(300):
        engine.ask([draw.randrange(2) for _ in range(draw.randint(1, 10))], draw.randint(1, 2))
        order = getattr(engine.manager.eviction, "order", list)()  # where there is none, the driver's index insists
        for page in order:
            parent = engine.manager.index.parent_of(page)
            assert parent is None or order.index(parent) > order.index(page)


def add_request(policy: ScanResistant, *page_table: int, use: PageUse = UNTRIED) -> None:
    """Release the pages of one request, deepest first."""
    for depth in reversed(range(len(page_table))):
        policy.add(page_table[depth], PageUse(depth, use.num_restores))


def test_scan_evicts_the_newest_untried_request_first_and_of_it_the_deepest_page() -> None:
    policy = ScanResistant()
    add_request(policy, 0, 1, 2)
    add_request(policy, 3, 4)
    add_request(policy, 5)
    assert policy.order() == [5, 4, 3, 2, 1, 0]
    assert [policy.pop_victim() for _ in range(6)] == [5, 4, 3, 2, 1, 0]


def test_scan_keeps_pages_that_were_restored_longest_and_in_the_order_of_use() -> None:
    policy = ScanResistant()
    add_request(policy, 0, 1, use=TRIED)
    add_request(policy, 2, 3)
    add_request(policy, 4, use=TRIED)
    assert policy.order() == [3, 2, 1, 0, 4]


def test_scan_lets_an_eighth_of_the_newcomers_stay_so_that_old_pages_cannot_keep_them_out_for_ever() -> None:
    policy = ScanResistant()
    for page in range(BATCHES_PER_FOOTHOLD):
        add_request(policy, page)
    assert policy.order() == [6, 5, 4, 3, 2, 1, 0, 7]


def test_scan_forgets_a_batch_whose_pages_are_all_in_use_again() -> None:
    policy = ScanResistant()
    for page in range(3):
        add_request(policy, 2 * page, 2 * page + 1)
    for page in (2, 3):
        policy.remove(page)
    assert policy.order() == [5, 4, 1, 0]
    assert len(policy._untried) == 2, "an empty batch would stay for as long as nothing is evicted"
    with pytest.raises(KeyError):
        policy.remove(2)
    with pytest.raises(AssertionError, match="page 5 is a candidate already"):
        policy.add(5, UNTRIED)


def cycle_twice(eviction: str) -> tuple[int, int]:
    """Tokens restored in the second cycle of 8 prompts, and tokens the pool holds, at 0.7 of what they need."""
    prompts = [[100 * number + n for n in range(20)] for number in range(1, 9)]
    num_pages = int(8 * 5 * 0.7)
    engine = ToyEngine(num_pages=num_pages, page_size=4, eviction=eviction)
    for prompt in prompts:
        assert engine.ask(prompt).metrics.cached_tokens == 0
    return sum(engine.ask(prompt).metrics.cached_tokens for prompt in prompts), num_pages * 4


def test_a_working_set_over_capacity_restores_nothing_under_lru_and_more_than_half_of_what_fits_under_scan() -> None:
    assert cycle_twice("lru") == (0, 112)
    restored, capacity = cycle_twice("scan")
    assert restored >= capacity / 2
    assert restored == 4 * 16 + 12  # of the four oldest all that can be restored, and what is left of the fifth


def test_under_scan_new_traffic_replaces_a_pool_full_of_pages_nobody_wants() -> None:
    engine = ToyEngine(num_pages=12, page_size=4, eviction="scan")
    for number in range(3):
        engine.ask([10 * number + n for n in range(16)])
    assert engine.pages == (0, 12, 0)
    chats = [[500 + 10 * number + n for n in range(8)] for number in range(2)]
    for _ in range(2 * BATCHES_PER_FOOTHOLD):
        for chat in chats:
            engine.ask(chat)
    assert [engine.hits(chat) for chat in chats] == [8, 8]


def test_lfu_evicts_what_was_restored_least_though_it_is_more_recent() -> None:
    engine = ToyEngine(num_pages=3, page_size=2, eviction="lfu")
    often, once = [1, 1, 9], [2, 2, 9]
    for prompt in (often, often, once):
        engine.ask(prompt)
    engine.ask([3, 3, 4, 4])
    assert (engine.hits(often), engine.hits(once)) == (2, 0)


def test_fifo_evicts_what_was_computed_first_however_often_it_was_used() -> None:
    engine = ToyEngine(num_pages=3, page_size=2, eviction="fifo")
    for prompt in ([1, 1, 9], [2, 2, 9], [1, 1, 9]):
        engine.ask(prompt)
    engine.ask([3, 3, 4, 4])
    assert (engine.hits([1, 1]), engine.hits([2, 2])) == (0, 2)


def test_length_evicts_the_later_pages_of_long_requests_first() -> None:
    engine = ToyEngine(num_pages=5, page_size=2, eviction="length")
    for prompt in ([1, 1, 1, 1, 1, 1, 9], [2, 2, 9]):
        engine.ask(prompt)
    engine.ask([3, 3, 4, 4])
    assert (engine.hits([1] * 6), engine.hits([2, 2])) == (4, 2)


def test_a_page_id_that_was_given_to_other_content_begins_with_no_past() -> None:
    engine = ToyEngine(num_pages=3, page_size=2, eviction="lfu")
    for _ in range(3):
        engine.ask([1, 1, 9])
    engine.reset()
    for prompt in ([2, 2, 9], [3, 3, 9], [3, 3, 9]):
        engine.ask(prompt)
    engine.ask([4, 4, 5, 5])
    assert (engine.hits([2, 2]), engine.hits([3, 3])) == (0, 2)


def test_a_parent_is_offered_when_its_last_child_has_gone() -> None:
    parents = {1: 0, 2: 0}
    policy = POLICIES["fifo"](parents.get)
    for page, number in ((1, 5), (2, 3), (0, 1)):
        policy.add(page, PageUse(depth=min(page, 1), num_restores=0, content_number=number))
    assert [policy.pop_victim() for _ in range(3)] == [2, 1, 0]
