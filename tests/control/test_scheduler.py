"""Who runs in a step: decode first, then prefill in chunks, then whoever has waited longest and fits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs.kit.toy_engine import T, ToyEngine, oracle
from minivllm.request import ContextLengthExceededError, Request, Status
from minivllm.scheduler import AGE_LIMIT_STEPS


def shape(engine: ToyEngine) -> list[tuple[str, int, int]]:
    return [(item.request.request_id, item.start, item.end) for item in engine.work]


def test_a_long_prompt_is_computed_in_chunks_of_the_budget() -> None:
    engine = ToyEngine(page_size=4, max_batched_tokens=5)
    request = engine.submit(T(12), 2)
    shapes = []
    while engine.scheduler.has_requests:
        engine.step()
        shapes.append(shape(engine))
    assert shapes == [[("R1", 0, 5)], [("R1", 5, 10)], [("R1", 10, 12)], [("R1", 12, 13)]]
    assert request.output_token_ids == oracle(T(12), 2)


def test_decode_rows_come_first_and_prefill_takes_what_is_left() -> None:
    engine = ToyEngine(num_pages=12, page_size=4, max_batched_tokens=6)
    engine.submit(T(4), 5)
    engine.submit([700 + n for n in range(9)], 2)
    engine.step()
    assert shape(engine) == [("R1", 0, 4), ("R2", 0, 2)]
    engine.step()
    assert shape(engine) == [("R1", 4, 5), ("R2", 2, 7)]
    engine.step()
    assert shape(engine) == [("R1", 5, 6), ("R2", 7, 9)]
    engine.step()
    assert shape(engine) == [("R1", 6, 7), ("R2", 9, 10)]


def test_only_the_work_that_reaches_the_last_known_token_samples() -> None:
    engine = ToyEngine(page_size=4, max_batched_tokens=5)
    request = engine.submit(T(9), 2)
    engine.step()
    assert [item.gives_next_token for item in engine.work] == [False]
    assert engine.work[0].token_ids == T(5)
    assert request.num_output_tokens == 0
    work = engine.scheduler.schedule()
    assert [item.gives_next_token for item in work] == [True]


def test_a_restored_request_starts_behind_what_it_restored() -> None:
    engine = ToyEngine(page_size=4)
    engine.ask(T(9))
    engine.submit(T(11))
    engine.step()
    assert shape(engine) == [("R2", 8, 11)]


def test_no_more_requests_run_than_allowed() -> None:
    engine = ToyEngine(num_pages=8, page_size=4, max_active_requests=2)
    for number in range(5):
        engine.submit([100 + number] * 3, 4)
    most = 0
    while engine.scheduler.has_requests:
        engine.step()
        most = max(most, len(engine.work))
    assert most == 2


def test_requests_run_in_the_order_in_which_they_came() -> None:
    engine = ToyEngine(num_pages=4, page_size=4, max_batched_tokens=8)
    requests = [engine.submit([100 + number] * 6, 3) for number in range(6)]
    started = []
    while engine.scheduler.has_requests:
        engine.step()
        started += [item.request for item in engine.work if item.request not in started]
    assert started == requests


def test_a_small_request_does_not_overtake_a_large_one_that_waits_for_pages() -> None:
    engine = ToyEngine(num_pages=4, page_size=4)
    running = engine.submit(T(8), 5)
    engine.step()
    large, small = engine.submit([300] * 8), engine.submit([400] * 2)
    engine.step()
    assert (large.status, small.status) == (Status.WAITING, Status.WAITING)
    engine.run()
    assert running.output_token_ids == oracle(T(8), 5)
    assert large.output_token_ids == oracle([300] * 8, 1)


def test_a_cancelled_request_at_the_head_lets_the_next_one_pass() -> None:
    engine = ToyEngine(num_pages=4, page_size=4)
    engine.submit(T(8), 5)
    engine.step()
    large, small = engine.submit([300] * 8), engine.submit([400] * 2)
    engine.step()
    engine.abort(large)
    engine.step()
    assert small.finish_reason == "length"


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
def test_four_identical_cold_prompts_in_one_step_are_computed_four_times(publication: str) -> None:
    engine = ToyEngine(num_pages=20, page_size=16, publication=publication, max_batched_tokens=256)
    requests = [engine.submit(T(64), 8) for _ in range(4)]
    engine.run()
    assert engine.counters.computed_prefill_tokens == 256
    assert {tuple(request.output_token_ids) for request in requests} == {tuple(oracle(T(64), 8))}
    assert engine.counters.flights_opened == engine.counters.flight_followers == 0


@pytest.mark.parametrize(("publication", "computed"), [("incremental", 64 + 3 * 16), ("on_finish", 256)])
def test_when_the_budget_takes_one_prompt_a_step_only_incremental_publication_shares(
    publication: str, computed: int
) -> None:
    engine = ToyEngine(num_pages=20, page_size=16, publication=publication, max_batched_tokens=64)
    for _ in range(4):
        engine.submit(T(64), 8)
    engine.run()
    assert engine.counters.computed_prefill_tokens == computed


@pytest.mark.parametrize(
    ("num_prompt", "max_tokens", "fits"),
    [(127, 1, True), (127, 2, True), (128, 1, True), (128, 2, False), (129, 1, False)],
)
def test_a_request_larger_than_the_pool_is_refused_at_once_and_the_next_one_runs(
    num_prompt: int, max_tokens: int, fits: bool
) -> None:
    engine = ToyEngine(num_pages=8, page_size=16)
    if fits:
        assert engine.ask(T(num_prompt), max_tokens).finish_reason == "length"
    else:
        with pytest.raises(ContextLengthExceededError, match="the page pool holds 128 tokens"):
            engine.submit(T(num_prompt), max_tokens)
    assert engine.ask([3] * 10).output_token_ids == oracle([3] * 10, 1)


def test_a_request_that_could_only_run_by_preempting_itself_is_refused() -> None:
    engine = ToyEngine(num_pages=6, page_size=16, max_batched_tokens=32)
    with pytest.raises(ContextLengthExceededError, match="90 prompt tokens and max_tokens 20 need KV for 109 tokens"):
        engine.submit(T(90), 20)


def test_two_requests_that_fit_only_one_at_a_time_run_one_after_the_other_without_preemption() -> None:
    engine = ToyEngine(num_pages=6, page_size=16, max_batched_tokens=32)
    one, other = engine.submit(T(60), 20), engine.submit([600 + n for n in range(60)], 20)
    engine.run()
    assert one.output_token_ids == oracle(T(60), 20)
    assert other.output_token_ids == oracle(other.prompt_token_ids, 20)
    assert engine.counters.preemptions == engine.counters.recomputed_tokens == 0


def test_nobody_waits_while_nothing_runs() -> None:
    """One after the other needs the whole pool, which earlier requests left full of cached pages."""
    engine = ToyEngine(num_pages=4, page_size=4)
    for number in range(8):
        engine.submit([100 + number] * 13, 4)  # the driver fails a step in which requests wait and nothing runs
    engine.run()
    assert engine.counters.lookup_requests == 8


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("page_size", [1, 2, 4])
def test_the_answer_does_not_depend_on_chunks_pages_or_company(page_size: int, budget: int) -> None:
    engine = ToyEngine(num_pages=16 // page_size, page_size=page_size, max_batched_tokens=budget)
    prompts = [T(5), T(8), [*T(6), 99], [77], T(8)]
    requests = [engine.submit(prompt, 4) for prompt in prompts]
    engine.run()
    for prompt, request in zip(prompts, requests, strict=True):
        assert request.output_token_ids == oracle(prompt, 4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    budget=st.integers(1, 9),
    active=st.integers(1, 4),
    asked=st.lists(st.tuples(st.integers(1, 14), st.integers(1, 4)), min_size=1, max_size=8),
)
def test_no_step_exceeds_its_budget_starves_a_runner_or_leaves_room_unused(
    budget: int, active: int, asked: list[tuple[int, int]]
) -> None:
    engine = ToyEngine(num_pages=8, page_size=4, max_batched_tokens=budget, max_active_requests=active)
    for number, (num_prompt, max_tokens) in enumerate(asked):
        engine.submit([100 + number] * num_prompt, max_tokens)
    while engine.scheduler.has_requests:
        engine.step()
        assert 1 <= sum(item.num_tokens for item in engine.work) <= budget
        assert len({item.request.request_id for item in engine.work}) == len(engine.work) <= active
        decoding = [item.request.num_output_tokens > 1 for item in engine.work]
        assert decoding == sorted(decoding, reverse=True), "decode rows stand in front"
        running = engine.scheduler.running
        assert all(any(item.request is request for item in engine.work) for request in running)
    assert engine.pages[2] == 0


def test_the_time_in_the_queue_and_the_timeline_are_of_the_given_clock() -> None:
    engine = ToyEngine(page_size=4, max_active_requests=1)
    engine.submit(T(4), 2)
    waiting = engine.submit([70, 71], 1)
    engine.step()
    engine.clock.now_s = 5.0
    engine.run()
    assert waiting.metrics.queue_s == 5.0
    assert [(event.name, event.at_s) for event in waiting.metrics.events] == [("admitted", 5.0), ("ended:length", 5.0)]
    assert waiting.metrics.e2e_s == 5.0


def admitted(toy: ToyEngine, request: Request) -> bool:
    return request in toy.scheduler.running or request not in toy.requests


def test_shortest_prefill_admits_what_has_least_left_to_compute() -> None:
    toy = ToyEngine(num_pages=40, scheduling="shortest_prefill", max_batched_tokens=4, max_active_requests=1)
    toy.ask(T(24))
    toy.submit([90, 91, 92, 93], 2)
    toy.step()
    long, short, nearly_cached = toy.submit(range(300, 316)), toy.submit(range(200, 206)), toy.submit([*T(24), 7])
    order = []
    while toy.requests:
        toy.step()
        order += [
            request for request in (long, short, nearly_cached) if admitted(toy, request) and request not in order
        ]
    assert order == [nearly_cached, short, long]


def test_longest_prefix_admits_what_restores_most() -> None:
    toy = ToyEngine(num_pages=40, scheduling="longest_prefix", max_batched_tokens=64, max_active_requests=1)
    toy.ask(T(24))
    toy.submit([90, 91, 92, 93], 2)
    toy.step()
    nothing, some, most = toy.submit([80, 81]), toy.submit([*T(8), 80]), toy.submit([*T(20), *range(300, 340)])
    order = []
    while toy.requests:
        toy.step()
        order += [request for request in (nothing, some, most) if admitted(toy, request) and request not in order]
    assert order == [most, some, nothing]


@pytest.mark.parametrize("scheduling", ["shortest_prefill", "longest_prefix"])
def test_a_request_that_others_always_overtake_is_admitted_at_the_age_limit(scheduling: str) -> None:
    toy = ToyEngine(num_pages=40, scheduling=scheduling, max_batched_tokens=64, max_active_requests=1)
    toy.ask(T(8))
    unlucky = toy.submit(range(300, 360))
    num_steps = 0
    while unlucky in toy.requests:
        toy.submit([*T(8), 90])
        toy.step()
        num_steps += 1
    assert AGE_LIMIT_STEPS <= num_steps <= AGE_LIMIT_STEPS + 2


def test_optimistic_admission_preempts_the_youngest_and_both_answers_are_right() -> None:
    toy = ToyEngine(num_pages=7, page_size=16, admission="optimistic", max_active_requests=2)
    first, second = toy.submit(T(34), 35), toy.submit(range(200, 234), 35)
    toy.run()
    assert toy.counters.preemptions >= 1
    assert first.num_preemptions == 0 < second.num_preemptions
    assert first.output_token_ids == oracle(T(34), 35)
    assert second.output_token_ids == oracle(range(200, 234), 35)
    assert second.metrics.computed_tokens == 34, "what is computed again is counted apart"
    assert toy.counters.computed_prefill_tokens == 68
    assert toy.counters.decoded_tokens == 2 * 34
    assert toy.counters.queried_tokens == 68, "a prompt is queried once, however often it is looked up"


@pytest.mark.parametrize("prompts", [[90], [60, 60]])
def test_preemption_comes_to_an_end(prompts: list[int]) -> None:
    toy = ToyEngine(num_pages=7, page_size=16, admission="optimistic", max_batched_tokens=32)
    requests = [toy.submit(range(100 * number, 100 * number + length), 20) for number, length in enumerate(prompts, 1)]
    toy.run()
    assert sum(request.num_preemptions for request in requests) <= 2 * len(requests)
    for request in requests:
        assert request.output_token_ids == oracle(request.prompt_token_ids, 20)


def test_reserve_never_preempts_what_optimistic_would() -> None:
    toy = ToyEngine(num_pages=7, page_size=16, max_active_requests=2)
    toy.submit(T(34), 35)
    toy.submit(range(200, 234), 35)
    toy.run()
    assert toy.counters.preemptions == toy.counters.recomputed_tokens == 0


def test_nobody_is_admitted_in_a_step_that_had_to_preempt() -> None:
    toy = ToyEngine(num_pages=6, page_size=2, admission="optimistic", max_active_requests=3)
    requests = [toy.submit([90 + number, 80, 70], 6) for number in range(3)]
    while toy.requests:
        running = set(toy.scheduler.running)
        before = toy.counters.preemptions
        toy.step()
        if toy.counters.preemptions > before:
            assert set(toy.scheduler.running) <= running
    for request in requests:
        assert request.output_token_ids == oracle(request.prompt_token_ids, 6)
