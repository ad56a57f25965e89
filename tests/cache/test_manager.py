"""The books: what is restored, what is promised, who owns a page, and when it is forgotten."""

from __future__ import annotations

import pytest

from labs.kit.toy_engine import ConstantHashIndex, T, ToyEngine, next_token, oracle
from minivllm.protocols import Moment
from minivllm.request import CacheBusyError


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
@pytest.mark.parametrize("num_tokens", [1, 15, 16, 17, 31, 32, 33, 48])
def test_a_fully_cached_prompt_still_computes_at_least_one_token(num_tokens: int, publication: str) -> None:
    engine = ToyEngine(num_pages=12, page_size=16, publication=publication)
    cold = engine.ask(T(num_tokens), 4)
    warm = engine.ask(T(num_tokens), 4)
    assert warm.output_token_ids == cold.output_token_ids == oracle(T(num_tokens), 4)
    assert warm.metrics.cached_tokens == (num_tokens - 1) // 16 * 16
    assert warm.metrics.computed_tokens == num_tokens - warm.metrics.cached_tokens >= 1
    third = engine.ask(T(num_tokens) + [9] * 16, 4)
    assert third.metrics.cached_tokens == num_tokens // 16 * 16


@pytest.mark.parametrize(("num_tokens", "right"), [(0, 0), (1, 1), (15, 1), (16, 1), (17, 2), (32, 2), (33, 3)])
def test_a_full_last_page_needs_no_page_more(num_tokens: int, right: int) -> None:
    assert ToyEngine(page_size=16).manager.pages_for(num_tokens) == right


@pytest.mark.parametrize(("prompt_pages", "admitted"), [(5, True), (6, False)])
def test_a_restored_page_is_not_counted_as_available_too(prompt_pages: int, admitted: bool) -> None:
    """Pool of 5, no page active, 2 of them hold the first 2 pages of the prompt: 3 can be given."""
    engine = ToyEngine(num_pages=5, page_size=4)
    engine.ask(T(8))
    assert engine.pages == (3, 2, 0)
    engine.limits = engine.limits.__class__(1000, 10_000, 10_000)  # let the request that cannot fit come this far
    request = engine.submit(T(prompt_pages * 4))
    engine.requests.remove(request)
    assert engine.manager.try_admit(request) is admitted
    if not admitted:
        assert engine.pages == (3, 2, 0)
        assert request.page_table == []
        assert engine.manager.num_promised_pages == 0
        assert engine.counters.lookup_requests == 1, "only the request that ran was counted"
        return
    assert len(request.page_table) == 2
    assert engine.manager.num_promised_pages == 3
    engine.manager.extend(request, prompt_pages * 4)
    assert engine.pages == (0, 0, 5)


def test_a_promise_is_kept_when_somebody_else_could_take_the_last_page() -> None:
    engine = ToyEngine(num_pages=4, page_size=4, max_batched_tokens=4)
    long = engine.submit(T(12))
    engine.step()
    late = engine.submit([800 + n for n in range(8)])
    engine.step()
    assert late.page_table == [], "one page is free beyond the three promised, and it needs two"
    engine.run()
    assert long.output_token_ids == oracle(T(12), 1)
    assert late.output_token_ids == oracle(late.prompt_token_ids, 1)


def test_a_page_that_is_handed_out_again_has_lost_its_old_key() -> None:
    engine = ToyEngine(num_pages=2, page_size=4)
    a, b = T(8), [900 + n for n in range(8)]
    engine.ask(a)
    engine.ask(b)
    assert engine.hits(a) == 0
    assert engine.hits(b) == 8


def test_requests_that_end_give_their_pages_back() -> None:
    engine = ToyEngine(num_pages=16, page_size=4)
    for number in range(50):
        prompt = [100 + number] * 12
        assert engine.ask(prompt).output_token_ids == oracle(prompt, 1)
        assert engine.pages[2] == 0
    assert engine.counters.evicted_tokens == (50 * 3 - 16) * 4
    assert engine.counters.published_tokens == 50 * 3 * 4


def test_the_second_of_two_that_computed_one_page_uses_the_first_ones_and_gives_its_own_back() -> None:
    engine = ToyEngine(num_pages=6, page_size=16)
    one, other = engine.submit(T(32), 8), engine.submit(T(32), 8)
    engine.step()
    assert one.page_table == other.page_table == [0, 1]
    assert engine.pages == (4, 0, 2)
    assert [engine.manager.pool.references(page) for page in (0, 1)] == [2, 2]
    assert (one.metrics.published_tokens, other.metrics.published_tokens) == (32, 0)
    third = engine.submit([700 + n for n in range(17)])
    engine.run()
    assert one.output_token_ids == other.output_token_ids == oracle(T(32), 8)
    assert third.output_token_ids == oracle(third.prompt_token_ids, 1)


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
def test_twins_interleaved_with_a_stranger_in_a_small_pool_stay_right(publication: str) -> None:
    engine = ToyEngine(num_pages=6, page_size=16, publication=publication, max_batched_tokens=24)
    one, other = engine.submit(T(32), 2), engine.submit(T(32), 16)
    engine.step()
    stranger = engine.submit([700 + n for n in range(32)], 1)
    engine.run()
    assert one.output_token_ids == oracle(T(32), 2)
    assert other.output_token_ids == oracle(T(32), 16)
    assert stranger.output_token_ids == oracle(stranger.prompt_token_ids, 1)


def test_a_page_published_behind_an_adopted_parent_is_found_behind_it() -> None:
    engine = ToyEngine(num_pages=8, page_size=4)
    one, other = engine.submit([*T(4), 70, 71, 72, 73]), engine.submit([*T(4), 80, 81, 82, 83])
    engine.run()
    assert engine.hits(one.prompt_token_ids) == engine.hits(other.prompt_token_ids) == 8
    assert engine.counters.published_tokens == 12


def test_pages_that_are_computed_in_a_step_are_not_restored_in_the_same_step() -> None:
    engine = ToyEngine(num_pages=8, page_size=16, max_batched_tokens=128)
    one, other = engine.submit([*T(40), 1]), engine.submit([*T(40), 2])
    engine.step()
    assert [item.start for item in engine.work] == [0, 0]
    assert (one.metrics.cached_tokens, other.metrics.cached_tokens) == (0, 0)


def test_pages_computed_in_one_step_are_restored_in_the_next() -> None:
    engine = ToyEngine(num_pages=8, page_size=16, max_batched_tokens=41)
    one, other = engine.submit([*T(40), 1], 3), engine.submit([*T(40), 2])
    engine.step()
    assert [item.request for item in engine.work] == [one]
    engine.step()
    assert other.metrics.cached_tokens == 32
    engine.run()


def test_the_match_is_made_at_admission_and_not_when_the_request_came() -> None:
    engine = ToyEngine(num_pages=6, page_size=4)
    prefix = T(12)
    engine.ask(prefix)
    hog = engine.submit([600 + n for n in range(16)], 5)  # 5 pages: takes all but one
    engine.step()
    late = engine.submit([*prefix, 99, 98])
    assert engine.hits(prefix) == 8, "two pages were cached when it came; decoding takes one more"
    engine.run()
    assert hog.output_token_ids == oracle(hog.prompt_token_ids, 5)
    assert late.metrics.cached_tokens == 4
    assert late.output_token_ids == oracle(late.prompt_token_ids, 1)


def test_salts_share_nothing_and_each_hits_its_own() -> None:
    engine = ToyEngine(num_pages=12, page_size=16)
    for salt in (None, "", "a"):
        assert engine.ask(T(33), salt=salt).metrics.cached_tokens == 0
        assert engine.ask(T(33), salt=salt).metrics.cached_tokens == 32
    assert engine.counters.hit_requests == 3


def test_salted_twins_in_one_batch_do_not_adopt_each_others_pages() -> None:
    engine = ToyEngine(num_pages=8, page_size=4)
    one, other = engine.submit(T(8), 2, salt="a"), engine.submit(T(8), 2, salt="b")
    engine.step()
    assert not set(one.page_table) & set(other.page_table)
    engine.run()


def test_with_the_cache_off_nothing_is_looked_up_published_or_kept() -> None:
    engine = ToyEngine(num_pages=8, page_size=16, prefix_cache=False)
    for _ in range(2):
        request = engine.ask(T(64))
        assert (request.metrics.cached_tokens, request.metrics.computed_tokens) == (0, 64)
    assert engine.pages == (8, 0, 0)
    counters = engine.counters.as_dict()
    assert {name for name, value in counters.items() if value} == {"computed_prefill_tokens"}


def test_a_request_that_does_not_read_the_cache_is_not_counted_and_still_publishes() -> None:
    engine = ToyEngine(page_size=4)
    first = engine.ask(T(9), reads_cache=False)
    assert (engine.counters.lookup_requests, engine.counters.queried_tokens) == (0, 0)
    assert first.metrics.published_tokens == 8
    assert engine.ask(T(9)).metrics.cached_tokens == 8
    assert engine.ask(T(9), reads_cache=False).metrics.computed_tokens == 9


def test_a_request_that_does_not_read_the_cache_computes_behind_its_own_pages_alone() -> None:
    engine = ToyEngine(page_size=4, max_batched_tokens=4)
    cached = engine.ask(T(8))
    pages_of_cached = engine.manager.index.lookup(cached.token_ids, 2, None)
    request = engine.submit(T(12), reads_cache=False)
    while request in engine.requests:
        engine.step()
        assert not set(request.page_table) & set(pages_of_cached), "it attends to pages that it did not compute"
    assert engine.hits(T(12)) == 12, "at its end it may publish what was missing"


def test_each_prompt_is_queried_once_however_often_it_waits() -> None:
    engine = ToyEngine(num_pages=4, page_size=4)
    engine.submit(T(12), 5)
    waiting = engine.submit([50, 51, 52, 53, 54, 55, 56, 57])
    for _ in range(3):
        engine.step()
    assert waiting.page_table == []
    assert engine.counters.queried_tokens == 12
    engine.run()
    assert (engine.counters.lookup_requests, engine.counters.queried_tokens) == (2, 20)


def test_cached_and_computed_tokens_add_up_to_the_prompt_and_to_the_counters() -> None:
    engine = ToyEngine(num_pages=12, page_size=4, max_batched_tokens=5)
    requests = [engine.ask(prompt, 3) for prompt in (T(9), T(13), T(9), [7, 7, 7], T(30))]
    for request in requests:
        metrics = request.metrics
        assert 0 <= metrics.cached_tokens < metrics.prompt_tokens
        assert metrics.cached_tokens + metrics.computed_tokens == metrics.prompt_tokens
    assert engine.counters.restored_tokens == sum(request.metrics.cached_tokens for request in requests)
    assert engine.counters.computed_prefill_tokens == sum(request.metrics.computed_tokens for request in requests)
    assert engine.counters.published_tokens == sum(request.metrics.published_tokens for request in requests)
    assert engine.counters.queried_tokens == sum(request.num_prompt_tokens for request in requests)
    assert engine.counters.hit_requests == sum(request.metrics.cached_tokens > 0 for request in requests)
    assert engine.counters.decoded_tokens == 2 * len(requests)


@pytest.mark.parametrize(("wait_s", "right"), [(9.9, 8), (10.0, 0), (11.0, 0)])
def test_a_page_that_nobody_used_for_its_time_to_live_is_forgotten(wait_s: float, right: int) -> None:
    engine = ToyEngine(page_size=4, prefix_ttl_s=10.0)
    engine.ask(T(9))
    engine.clock.now_s += wait_s
    assert engine.ask(T(9)).metrics.cached_tokens == right
    assert engine.counters.evicted_tokens == 8 - right


def test_using_a_page_starts_its_time_anew() -> None:
    engine = ToyEngine(page_size=4, prefix_ttl_s=10.0)
    for _ in range(3):
        last = engine.ask(T(9))
        engine.clock.now_s += 8.0
    assert last.metrics.cached_tokens == 8


def test_a_page_in_use_does_not_age() -> None:
    engine = ToyEngine(page_size=4, prefix_ttl_s=10.0)
    running = engine.submit(T(9), 6)
    engine.step()
    engine.clock.now_s += 100.0
    assert engine.submit([*T(8), 99]).metrics.cached_tokens == 0
    engine.step()
    assert engine.counters.restored_tokens == 8
    engine.run()
    assert running.output_token_ids == oracle(T(9), 6)


def test_a_tail_that_is_older_than_its_head_is_forgotten_alone() -> None:
    engine = ToyEngine(page_size=4, prefix_ttl_s=10.0)
    engine.ask(T(12))
    engine.clock.now_s += 6.0
    engine.ask([*T(4), 1])
    engine.clock.now_s += 6.0
    assert engine.ask(T(13)).metrics.cached_tokens == 4


def test_without_a_time_to_live_a_page_stays() -> None:
    engine = ToyEngine(page_size=4)
    engine.ask(T(9))
    engine.clock.now_s += 1e9
    assert engine.ask(T(9)).metrics.cached_tokens == 8


def test_a_reset_forgets_every_page_and_tells_how_many() -> None:
    engine = ToyEngine(page_size=4)
    engine.ask(T(9))
    engine.ask(T(8), salt="a")
    evicted = engine.counters.evicted_tokens
    assert engine.reset() == 4
    assert engine.pages == (8, 0, 0)
    assert engine.counters.evicted_tokens == evicted, "a reset is not an eviction"
    assert engine.ask(T(9)).metrics.cached_tokens == 0
    assert engine.reset() == 2
    assert engine.reset() == 0


@pytest.mark.parametrize("salt", [None, "a"])
def test_a_reset_while_a_page_is_in_use_is_refused_before_it_forgets_anything(salt: str | None) -> None:
    engine = ToyEngine(page_size=4)
    running = engine.submit(T(8), 9, salt="a")
    engine.step()
    ended = engine.submit([70, 71, 72, 73], salt="a")  # indexed last: a reset would begin with its page
    engine.step()
    assert (ended.finish_reason, engine.manager.num_cached_pages) == ("length", 1)
    with pytest.raises(CacheBusyError, match="pages are in use"):
        engine.reset(salt)
    engine.audit()
    assert engine.manager.num_cached_pages == 1
    engine.run()
    assert running.output_token_ids == oracle(T(8), 9)


def test_a_reset_of_one_salt_leaves_the_others() -> None:
    engine = ToyEngine(page_size=4)
    for salt in (None, "", "a"):
        engine.ask(T(8), salt=salt)
    assert engine.reset("a") == 2
    assert engine.reset("never seen") == 0
    assert [engine.hits(T(8), salt) for salt in (None, "", "a")] == [8, 8, 0]
    assert engine.reset("") == 2
    assert [engine.hits(T(8), salt) for salt in (None, "", "a")] == [8, 0, 0]


def test_when_every_key_collides_no_answer_is_wrong_and_only_speed_is_lost() -> None:
    engine = ToyEngine(page_size=4, components={"prefix_index": ConstantHashIndex(4)})
    prompts = [T(13), [*T(4), 90, 91, 92, 93, 94], [800 + n for n in range(9)], T(13), [800 + n for n in range(9)]]
    cached = []
    for prompt in prompts:
        request = engine.ask(prompt, 3)
        assert request.output_token_ids == oracle(prompt, 3)
        cached.append(request.metrics.cached_tokens)
    assert cached == [0, 4, 0, 4, 0]
    assert len(engine.manager.index) == 1


def test_a_request_whose_key_is_taken_publishes_nothing_behind_it() -> None:
    engine = ToyEngine(page_size=4, components={"prefix_index": ConstantHashIndex(4)})
    engine.ask(T(8))
    stranger = engine.ask([800 + n for n in range(8)])
    assert stranger.publication_stopped
    assert stranger.metrics.published_tokens == 0
    assert engine.pages == (7, 1, 0)


def test_more_pages_than_promised_are_refused() -> None:
    engine = ToyEngine(page_size=4)
    request = engine.submit(T(4))
    assert engine.manager.try_admit(request)
    engine.manager.extend(request, 4)
    with pytest.raises(AssertionError, match="R1 asks for more pages than it was promised"):
        engine.manager.extend(request, 5)


def test_what_an_answer_added_is_found_by_the_next_turn() -> None:
    engine = ToyEngine(num_pages=12, page_size=4)
    turn = engine.ask(T(6), 7)
    follow_up = engine.ask([*turn.token_ids, 99], 1)
    assert follow_up.metrics.cached_tokens == 12
    assert follow_up.output_token_ids == [next_token(follow_up.prompt_token_ids)]


def test_publishing_twice_counts_once() -> None:
    engine = ToyEngine(page_size=4)
    request = engine.submit(T(8), 3)
    engine.step()
    for moment in (Moment.COMPUTED, Moment.COMPUTED, Moment.ENDED):
        engine.manager.publish(request, moment)
    assert request.metrics.published_tokens == engine.counters.published_tokens == 8
