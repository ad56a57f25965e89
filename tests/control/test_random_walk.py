"""Random arrivals, cancels, failures, steps, resets and waits: every answer is the oracle's, the books always add up.

The driver audits after every schedule and step, and checks at every read that the page holds exactly the prefix it
should. A failure prints the shortest script that shows it.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from labs.kit.toy_engine import ConstantHashIndex, ToyEngine, oracle
from minivllm.config import CHOICES
from minivllm.request import Request

PREFIXES: tuple[list[int], ...] = (
    [],
    [1, 1, 1, 1],
    [1, 1, 1, 1, 2, 2, 2, 2],
    [1, 1, 1, 1, 2, 2, 3],
    [2, 2, 2, 2, 1, 1, 1, 1],
    [1] * 9,
)
SALTS = (None, None, None, "", "a")


class RandomWalk(RuleBasedStateMachine):
    @initialize(
        page_size=st.sampled_from([1, 2, 4]),
        num_pages=st.integers(4, 8),
        publication=st.sampled_from(CHOICES["publication"]),
        single_flight=st.sampled_from(["off", "release_on_finish", "release_after_prefill", "page"]),
        scheduling=st.sampled_from(["fcfs", "shortest_prefill", "longest_prefix"]),
        admission=st.sampled_from(["reserve", "optimistic"]),
        eviction=st.sampled_from(CHOICES["eviction"]),
        num_head_pages=st.sampled_from([0, 0, 1, 2]),
        budget=st.integers(1, 12),
        active=st.integers(1, 4),
        num_slots=st.sampled_from([0, 1, 2, 4]),
        ttl_s=st.sampled_from([None, None, 10.0]),
        cache=st.sampled_from([True, True, True, False]),
        collide=st.sampled_from([False, False, False, True]),
    )
    def build(
        self,
        page_size: int,
        num_pages: int,
        publication: str,
        single_flight: str,
        scheduling: str,
        admission: str,
        eviction: str,
        num_head_pages: int,
        budget: int,
        active: int,
        num_slots: int,
        ttl_s: float | None,
        cache: bool,
        collide: bool,
    ) -> None:
        self.engine = ToyEngine(
            page_size=page_size,
            num_pages=num_pages,
            publication=publication,
            single_flight=single_flight,
            scheduling=scheduling,
            admission=admission,
            eviction=eviction,
            num_head_pages=num_head_pages,
            prefix_cache=cache,
            prefix_ttl_s=ttl_s,
            max_batched_tokens=budget,
            max_active_requests=active,
            num_slots=num_slots,
            components={"prefix_index": ConstantHashIndex(page_size)} if collide else None,
        )
        self.all: list[Request] = []
        self.counters = self.engine.counters.as_dict()

    @rule(
        prefix=st.sampled_from(PREFIXES),
        suffix=st.lists(st.integers(1, 3), max_size=5),
        max_tokens=st.integers(1, 6),
        salt=st.sampled_from(SALTS),
        reads_cache=st.sampled_from([True, True, True, False]),
        id_slot=st.sampled_from([None, None, None, 0, 1, 3]),
        goes_on=st.booleans(),
    )
    def arrive(
        self,
        prefix: list[int],
        suffix: list[int],
        max_tokens: int,
        salt: str | None,
        reads_cache: bool,
        id_slot: int | None,
        goes_on: bool,
    ) -> None:
        if goes_on and self.all:  # the next turn of a conversation
            prefix, salt = self.all[-1].token_ids, self.all[-1].cache_salt
        if id_slot is not None and id_slot >= len(self.engine.slots.slots):
            id_slot = None
        fitting = self.engine.limits.pool_tokens - max_tokens + 1
        prompt = [*prefix, *suffix][: max(fitting, 0)]
        if prompt:
            options: dict[str, Any] = {"salt": salt, "reads_cache": reads_cache, "id_slot": id_slot}
            self.all.append(self.engine.submit(prompt, max_tokens, **options))

    @precondition(lambda self: self.engine.scheduler.has_requests)
    @rule()
    def step(self) -> None:
        self.engine.step()
        self.check()

    @precondition(lambda self: self.engine.scheduler.running)
    @rule(number=st.integers(0, 3))
    def fail(self, number: int) -> None:
        running = self.engine.scheduler.running
        self.engine.step(failing=[running[number % len(running)]])
        self.check()

    @precondition(lambda self: self.engine.requests)
    @rule(number=st.integers(0, 7))
    def cancel(self, number: int) -> None:
        self.engine.abort(self.engine.requests[number % len(self.engine.requests)])
        self.check()

    @rule(slot_id=st.integers(0, 3))
    def erase(self, slot_id: int) -> None:
        slots = self.engine.slots.slots
        if slot_id < len(slots) and not slots[slot_id].is_busy:
            held = self.engine.slots.num_held_tokens(slots[slot_id])
            assert self.engine.erase(slot_id) == held

    @precondition(lambda self: not self.engine.requests)
    @rule(salt=st.sampled_from([None, "", "a"]))
    def reset(self, salt: str | None) -> None:
        cached = self.engine.manager.num_cached_pages
        dropped = self.engine.reset(salt)
        assert dropped == cached - self.engine.manager.num_cached_pages
        assert salt is not None or self.engine.manager.num_cached_pages == 0

    @rule(seconds=st.sampled_from([1.0, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.engine.clock.now_s += seconds

    def check(self) -> None:
        counters = self.engine.counters.as_dict()
        assert all(counters[name] >= self.counters[name] for name in counters), "counters only grow"
        assert 0 <= counters["restored_tokens"] <= counters["queried_tokens"]
        assert counters["hit_requests"] <= counters["lookup_requests"]
        self.counters = counters
        for request in self.all:
            assert request.output_token_ids == oracle(request.prompt_token_ids, request.num_output_tokens)
            assert 0 <= request.metrics.cached_tokens < request.num_prompt_tokens
            assert request.metrics.published_tokens <= request.num_seen_tokens * (1 + request.num_preemptions)
            if not request.reads_prefix_cache:
                assert request.metrics.cached_tokens == 0
        if not self.engine.requests:
            assert self.engine.manager.num_promised_pages == 0
            assert self.engine.manager.num_active_pages == len(self.engine.manager.partials)

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.engine.run()
        self.check()
        for request in self.all:
            assert request.finish_reason in ("length", "abort", "error")
            if request.finish_reason == "length":
                assert request.num_output_tokens == request.params.max_tokens


def test_whatever_happens_in_whatever_order_the_answers_are_right_and_the_books_add_up() -> None:
    run_state_machine_as_test(
        RandomWalk, settings=settings(max_examples=300, stateful_step_count=40, deadline=None, derandomize=True)
    )


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
def test_two_thousand_steps_in_a_pool_of_ten_pages(publication: str) -> None:
    draw = random.Random(7)
    engine = ToyEngine(num_pages=10, page_size=4, publication=publication, max_batched_tokens=7, max_active_requests=4)
    requests: list[Request] = []
    for _ in range(2_000):
        if len(engine.requests) < 6 and draw.random() < 0.4:
            prompt = [*draw.choice(PREFIXES), *(draw.randint(1, 3) for _ in range(draw.randint(1, 9)))]
            requests.append(engine.submit(prompt, draw.randint(1, 9), salt=draw.choice(SALTS)))
        if engine.requests and draw.random() < 0.03:
            engine.abort(draw.choice(engine.requests))
        if engine.scheduler.has_requests:
            engine.step()
    engine.run()
    for request in requests:
        assert request.output_token_ids == oracle(request.prompt_token_ids, request.num_output_tokens)
    counters = engine.counters
    assert min(counters.hit_requests, counters.evicted_tokens, counters.published_tokens) > 100, "the walk went places"
    assert engine.pages[2] == 0
