"""The simulator's policies at work in the real books: a child is never dropped after its parent, no answer is wrong."""

from __future__ import annotations

import random

import pytest

from minivllm.policies.eviction import POLICIES, Eviction
from minivllm.request import Request
from tests.control.driver import CheckedIndex, ToyEngine, oracle

SHARED = ([1] * 4, [1] * 8, [1, 1, 1, 1, 2, 2, 2, 2], [2] * 6)


class ForgettingIndex(CheckedIndex):
    """Tells the policy of every page that is gone, because the engine gives its id to other content."""

    eviction: Eviction

    def remove(self, page_id: int) -> None:
        super().remove(page_id)
        self.eviction.forget(page_id)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "lru-head-first"])
def test_the_engine_runs_on_every_policy(name: str) -> None:
    draw = random.Random(8)
    index = ForgettingIndex(4)
    index.eviction = POLICIES[name](index.parent_of)
    parts = {"prefix_index": index, "eviction": index.eviction}
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
