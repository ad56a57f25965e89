"""When a page may be found: never before, and never more than, its KV was computed."""

from __future__ import annotations

import pytest

from minivllm.cache.publication import POLICIES, Incremental, OnFinish
from minivllm.config import CHOICES
from minivllm.protocols import Moment
from minivllm.request import Request
from tests.control.driver import T, ToyEngine, letter, oracle

PAGE = 16
EXTENSION = [9] * 4


def test_every_policy_that_may_be_chosen_exists() -> None:
    assert set(POLICIES) == set(CHOICES["publication"])


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


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
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


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
def test_one_more_token_fills_the_page_and_it_is_published(publication: str) -> None:
    engine = ToyEngine(num_pages=8, page_size=PAGE, publication=publication)
    first = engine.ask(T(13), max_tokens=4)
    assert (len(first.token_ids), engine.hits(first.token_ids)) == (17, 16)
    second = engine.ask([*first.token_ids, *EXTENSION], 5)
    assert second.metrics.cached_tokens == 16
    assert second.output_token_ids == oracle(second.prompt_token_ids, 5)


@pytest.mark.parametrize(("publication", "findable"), [("incremental", 8), ("on_finish", 0)])
def test_a_failed_forward_pass_publishes_nothing_more(publication: str, findable: int) -> None:
    engine = ToyEngine(num_pages=8, page_size=4, publication=publication, max_batched_tokens=4)
    request = engine.submit(T(16))
    engine.step()
    engine.step()
    engine.step(failing=[request])
    assert request.finish_reason == "error"
    assert engine.hits(T(16)) == findable
    assert engine.pages == (8 - findable // 4, findable // 4, 0)


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
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


@pytest.mark.parametrize("publication", ["incremental", "on_finish"])
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
