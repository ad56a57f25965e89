"""The simulator's policies at work in the real books: a child is never dropped after its parent, no answer is wrong."""

from __future__ import annotations

import random

import pytest

from minivllm.policies.eviction import POLICIES
from minivllm.policies.in_engine import InEngine
from minivllm.request import Request
from tests.control.driver import CheckedIndex, ToyEngine, oracle

SHARED = ([1] * 4, [1] * 8, [1, 1, 1, 1, 2, 2, 2, 2], [2] * 6)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "lru-head-first"])
def test_the_engine_runs_on_every_policy(name: str) -> None:
    draw = random.Random(8)
    index = CheckedIndex(4)
    parts = {"prefix_index": index, "eviction": InEngine(POLICIES[name](index.parent_of))}
    engine = ToyEngine(num_pages=10, page_size=4, max_batched_tokens=7, max_active_requests=4, components=parts)
    requests: list[Request] = []
    for _ in range(400):
        if len(engine.requests) < 6 and draw.random() < 0.4:
            prompt = [*draw.choice(SHARED), *(draw.randint(1, 3) for _ in range(draw.randint(1, 9)))]
            requests.append(engine.submit(prompt, draw.randint(1, 9)))
        if engine.requests and draw.random() < 0.03:
            engine.abort(draw.choice(engine.requests))
        if engine.scheduler.has_requests:
            engine.step()
    engine.run()
    for request in requests:
        assert request.output_token_ids == oracle(request.prompt_token_ids, request.num_output_tokens)
    assert min(engine.counters.hit_requests, engine.counters.evicted_tokens) > 20, "the walk went places"


def test_the_engine_tells_a_policy_of_the_simulator_how_often_a_page_was_used() -> None:
    index = CheckedIndex(2)
    policy = POLICIES["lfu"](index.parent_of)
    engine = ToyEngine(num_pages=3, page_size=2, components={"prefix_index": index, "eviction": InEngine(policy)})
    often, once = [1, 1, 9], [2, 2, 9]
    for prompt in (often, often, once):
        engine.ask(prompt)
    engine.ask([3, 3, 4, 4])
    assert (engine.hits(often), engine.hits(once)) == (2, 0), "the one that was used less, though more recently"


def test_a_page_id_that_was_given_to_other_content_begins_with_no_past() -> None:
    index = CheckedIndex(2)
    policy = InEngine(POLICIES["lfu"](index.parent_of))
    engine = ToyEngine(num_pages=3, page_size=2, components={"prefix_index": index, "eviction": policy})
    for _ in range(3):
        engine.ask([1, 1, 9])
    engine.reset()
    for prompt in ([2, 2, 9], [3, 3, 9], [3, 3, 9]):
        engine.ask(prompt)
    engine.ask([4, 4, 5, 5])
    assert (engine.hits([2, 2]), engine.hits([3, 3])) == (0, 2)
