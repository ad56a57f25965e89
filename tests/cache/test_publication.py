"""When a page may be found: never before, and never more than, its KV was computed."""

from __future__ import annotations

import pytest

from labs.kit.toy_engine import T, ToyEngine, letter, oracle
from minivllm.cache.publication import POLICIES, Incremental, OnFinish
from minivllm.config import CHOICES
from minivllm.protocols import Moment
from minivllm.request import Request

PAGE = 16
EXTENSION = [9] * 4


def test_every_policy_that_may_be_chosen_exists() -> None:
    assert set(POLICIES) == set(CHOICES["publication"])


def test_only_on_schedule_says_anything_before_the_forward_pass() -> None:
    said = {name: policy().findable_tokens(Moment.SCHEDULED, 8, 8) for name, policy in POLICIES.items()}
    assert said == {"on_finish": 0, "after_prefill": 0, "incremental": 0, "on_schedule": 8}


def test_on_finish_says_nothing_before_the_end_and_everything_then() -> None:
    assert OnFinish().findable_tokens(Moment.COMPUTED, 12, 8) == 0
    assert OnFinish().findable_tokens(Moment.ENDED, 12, 8) == 12


def test_incremental_says_what_is_computed_at_every_moment() -> None:
    assert Incremental().findable_tokens(Moment.COMPUTED, 5, 8) == 5
    assert Incremental().findable_tokens(Moment.ENDED, 12, 8) == 12


def test_incremental_publishes_page_by_page_while_the_request_runs() -> None:
    engine = ToyEngine(num_pages=8, page_size=4, max_batched_tokens=3)
    request = engine.submit(T(10), max_tokens=3)
    findable = []
    while engine.scheduler.has_requests:
        engine.step()
        findable.append(engine.hits(request.token_ids))
    #          3  6  9  10 11 12 tokens computed
    assert findable == [0, 4, 8, 8, 8, 12]
    assert request.metrics.published_tokens == 12


def test_on_finish_publishes_nothing_until_the_request_ends() -> None:
    engine = ToyEngine(num_pages=8, page_size=4, publication="on_finish", max_batched_tokens=3)
    request = engine.submit(T(10), max_tokens=3)
    findable = []
    while engine.scheduler.has_requests:
        engine.step()
        findable.append(engine.hits(request.token_ids))
    assert findable == [0, 0, 0, 0, 0, 12]


def run_to_sixteenth_token(engine: ToyEngine, prompt: list[int], ending: str) -> Request:
    """Three tokens are sampled; the third, which ends the request in one way or another, has no KV."""
    third = oracle(prompt, 3)[2]
    if ending == "length":
        return engine.ask(prompt, 3)
    if ending == "stop token":
        return engine.ask(prompt, 9, stop_token_ids=[third])
    if ending == "stop string":
        return engine.ask(prompt, 9, stop=["".join(letter(token) for token in oracle(prompt, 3)[1:])])
    request = engine.submit(prompt, 9)
    while request.num_output_tokens < 3:
        engine.step()
    engine.abort(request)
    return request


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
@pytest.mark.parametrize("ending", ["length", "stop token", "stop string", "cancel"])
@pytest.mark.parametrize("num_tokens", [16, 32, 48])
def test_the_last_sampled_token_has_no_kv_and_its_page_is_not_published(
    num_tokens: int, ending: str, publication: str
) -> None:
    engine = ToyEngine(num_pages=8, page_size=PAGE, publication=publication)
    first = run_to_sixteenth_token(engine, T(num_tokens - 3), ending)
    assert len(first.token_ids) == num_tokens
    assert first.num_computed_tokens == num_tokens - 1
    assert engine.hits(first.token_ids) == num_tokens - PAGE
    assert first.metrics.published_tokens == num_tokens - PAGE
    second = engine.ask([*first.token_ids, *EXTENSION], 5)
    assert second.metrics.cached_tokens == num_tokens - PAGE
    assert second.output_token_ids == oracle(second.prompt_token_ids, 5)


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
def test_one_more_token_fills_the_page_and_it_is_published(publication: str) -> None:
    engine = ToyEngine(num_pages=8, page_size=PAGE, publication=publication)
    first = engine.ask(T(13), max_tokens=4)
    assert (len(first.token_ids), engine.hits(first.token_ids)) == (17, 16)
    second = engine.ask([*first.token_ids, *EXTENSION], 5)
    assert second.metrics.cached_tokens == 16
    assert second.output_token_ids == oracle(second.prompt_token_ids, 5)


@pytest.mark.parametrize(("publication", "findable"), [("incremental", 8), ("on_finish", 0), ("on_schedule", 8)])
def test_a_failed_forward_pass_publishes_nothing_more(publication: str, findable: int) -> None:
    engine = ToyEngine(num_pages=8, page_size=4, publication=publication, max_batched_tokens=4)
    request = engine.submit(T(16))
    engine.step()
    engine.step()
    engine.step(failing=[request])
    assert request.finish_reason == "error"
    assert engine.hits(T(16)) == findable
    assert engine.pages == (8 - findable // 4, findable // 4, 0)


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
def test_what_a_cancelled_request_computed_stays_valid_and_the_rest_is_given_back(publication: str) -> None:
    engine = ToyEngine(num_pages=4, page_size=16, publication=publication, max_batched_tokens=16)
    first = engine.submit(T(64))
    engine.step()
    engine.step()
    engine.abort(first)
    assert engine.hits(T(64)) == 32
    assert engine.pages == (2, 2, 0)
    other = engine.ask([900 + n for n in range(32)])
    assert other.output_token_ids == oracle(other.prompt_token_ids, 1)
    again = engine.ask(T(64))
    assert again.metrics.cached_tokens == 32
    assert again.output_token_ids == oracle(T(64), 1)


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
def test_pages_of_a_cancelled_request_that_were_evicted_are_not_found(publication: str) -> None:
    engine = ToyEngine(num_pages=4, page_size=16, publication=publication, max_batched_tokens=16)
    first = engine.submit(T(64))
    engine.step()
    engine.step()
    engine.abort(first)
    engine.ask([900 + n for n in range(64)])  # four fresh pages: everything before goes
    assert engine.hits(T(64)) == 0
    again = engine.ask(T(64), 1)
    assert (again.metrics.cached_tokens, again.output_token_ids) == (0, oracle(T(64), 1))


def test_a_request_cancelled_before_it_ran_publishes_nothing() -> None:
    engine = ToyEngine()
    request = engine.submit(T(8))
    engine.abort(request)
    assert engine.pages == (8, 0, 0)
    assert request.metrics.queue_s is None


def test_a_policy_that_promises_more_than_was_computed_is_caught() -> None:
    class TooEager:
        def findable_tokens(self, moment: Moment, num_computed_tokens: int, num_prompt_tokens: int) -> int:
            return num_prompt_tokens

    engine = ToyEngine(page_size=4, max_batched_tokens=4, components={"publication": TooEager()})
    engine.submit(T(8))
    with pytest.raises(AssertionError, match="8 tokens published, 4 computed"):
        engine.step()


def ahead(**settings: int) -> ToyEngine:
    return ToyEngine(**{"num_pages": 16, "page_size": 4, "publication": "on_schedule", **settings})  # type: ignore[arg-type]


def test_on_schedule_shares_within_the_step_that_computes() -> None:
    engine = ahead()
    requests = [engine.submit(T(14), max_tokens=2) for _ in range(3)]
    engine.step()
    assert [item.num_tokens for item in engine.work] == [14, 2, 2]
    assert engine.counters.computed_prefill_tokens == 14 + 2 * 2
    engine.run()
    assert [request.output_token_ids for request in requests] == [oracle(T(14), 2)] * 3


def test_on_schedule_a_document_is_computed_once_in_one_step() -> None:
    engine = ahead()
    requests = [engine.submit([*T(12), 90 + number], max_tokens=2) for number in range(4)]
    engine.run()
    assert engine.counters.computed_prefill_tokens == 12 + 4
    assert all(request.output_token_ids == oracle(request.prompt_token_ids, 2) for request in requests)


def test_pages_that_were_published_ahead_count_as_published_when_they_are_computed() -> None:
    engine = ahead(max_batched_tokens=8)
    request = engine.submit(T(14))
    engine.step(failing=[request])
    assert (engine.counters.published_tokens, request.metrics.published_tokens) == (0, 0)
    again = engine.ask(T(14))
    assert (engine.counters.published_tokens, again.metrics.published_tokens) == (12, 12)


def test_a_failed_leader_takes_its_pages_along_and_those_who_attached_them_compute_again() -> None:
    engine = ahead()
    leader = engine.submit(T(14), max_tokens=2)
    twin = engine.submit(T(14), max_tokens=2)
    longer = engine.submit([*T(14), 91, 92, 93, 94], max_tokens=2)
    stranger = engine.submit([70] * 6, max_tokens=2)
    engine.step(failing=[leader])
    assert leader.finish_reason == "error"
    assert (engine.hits(T(14)), engine.hits([70] * 6)) == (0, 4)
    assert (twin.num_preemptions, longer.num_preemptions, stranger.num_preemptions) == (1, 1, 0)
    engine.run()
    for request in (twin, longer, stranger):
        assert request.output_token_ids == oracle(request.prompt_token_ids, 2)
    assert engine.hits([*T(14), 91, 92]) == 16


def test_a_failed_follower_leaves_the_pages_of_its_leader() -> None:
    engine = ahead()
    leader = engine.submit(T(14), max_tokens=2)
    longer = engine.submit([*T(14), 91, 92, 93, 94], max_tokens=2)
    longest = engine.submit([*T(14), 91, 92, 93, 94, 95, 96, 97], max_tokens=2)
    engine.step(failing=[longer])
    assert engine.hits([*T(14), 91, 92]) == 12
    assert (leader.num_preemptions, longest.num_preemptions) == (0, 1)
    engine.run()
    assert longest.output_token_ids == oracle(longest.prompt_token_ids, 2)


def test_of_two_who_compute_the_same_page_in_one_step_the_second_takes_the_page_of_the_first() -> None:
    engine = ahead(max_batched_tokens=10, num_pages=8)
    first = engine.submit(T(8), max_tokens=3)
    second = engine.submit([*T(4), 60, 61, 62], max_tokens=3)
    engine.step()
    assert first.page_table[0] == second.page_table[0]
    both = [engine.submit([*T(8), 80, 81, 82, 83], max_tokens=1, reads_cache=reads) for reads in (False, True)]
    engine.run()
    assert all(request.output_token_ids == oracle(request.prompt_token_ids, 1) for request in both)


@pytest.mark.parametrize("failing", [0, 1])
def test_twins_that_grow_the_same_page_by_decoding_share_it_and_survive_each_other(failing: int) -> None:
    engine = ahead(num_pages=12)
    twins = [engine.submit(T(7), max_tokens=6) for _ in range(2)]
    engine.step()
    engine.step(failing=[twins[failing]])
    engine.run()
    assert twins[1 - failing].output_token_ids == oracle(T(7), 6)
    assert engine.hits([*T(7), *oracle(T(7), 6)]) == 12
