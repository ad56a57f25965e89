"""Which page goes next: the least recently used, and of one request the deepest."""

from __future__ import annotations

import random

import pytest

from minivllm.cache.eviction import TailFirstLRU
from tests.control.driver import ToyEngine


def test_pages_leave_in_the_order_in_which_they_came() -> None:
    queue = TailFirstLRU()
    for page in (3, 1, 2):
        queue.add(page)
    assert queue.order() == [3, 1, 2]
    assert [queue.pop_victim() for _ in range(3)] == [3, 1, 2]
    assert len(queue) == 0


def test_a_page_in_use_again_is_no_candidate_and_comes_back_as_the_newest() -> None:
    queue = TailFirstLRU()
    for page in (1, 2, 3):
        queue.add(page)
    queue.remove(1)
    assert queue.order() == [2, 3]
    queue.add(1)
    assert queue.order() == [2, 3, 1]


def test_a_candidate_cannot_be_added_twice_or_removed_when_it_is_none() -> None:
    queue = TailFirstLRU()
    queue.add(1)
    with pytest.raises(AssertionError, match="page 1 is a candidate already"):
        queue.add(1)
    with pytest.raises(KeyError):
        queue.remove(2)


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
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


def test_no_page_is_evicted_before_a_page_that_is_chained_to_it() -> None:
    draw = random.Random(1)
    engine = ToyEngine(num_pages=6, page_size=2)
    for _ in range(300):
        engine.ask([draw.randrange(2) for _ in range(draw.randint(1, 10))], draw.randint(1, 2))
        order = engine.manager.eviction.order()  # type: ignore[attr-defined]
        for page in order:
            parent = engine.manager.index.parent_of(page)
            assert parent is None or order.index(parent) > order.index(page)
