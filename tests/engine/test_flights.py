"""Single flight on the real model: tokens computed, and the oracle's answer for everybody, whoever leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minivllm import LLM, SamplingParams
from minivllm.cache import audit
from minivllm.config import CHOICES
from minivllm.request import RequestOutput
from tests.engine.oracle import Oracle

MakeLLM = Callable[..., LLM]
FLIGHTS = ["release_on_finish", "release_after_prefill", "page"]
PUBLICATIONS = CHOICES["publication"]


def greedy(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)


def tokens(count: int, start: int = 5) -> list[int]:
    return [start + number * 7 % 480 for number in range(count)]


def run(llm: LLM) -> dict[str, RequestOutput]:
    ended = {}
    while llm.engine.has_unfinished_requests:
        for output in llm.engine.step():
            if output.finish_reason is not None:
                ended[output.request_id] = output
        audit.check(llm.engine)
    return ended


@pytest.mark.parametrize("single_flight", FLIGHTS)
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_eight_identical_cold_requests_of_532_tokens_compute_the_prompt_once(
    make_llm: MakeLLM, tiny_oracle: Oracle, single_flight: str, publication: str
) -> None:
    llm = make_llm(num_pages=320, single_flight=single_flight, publication=publication)
    for output in llm.generate([tokens(532)] * 8, greedy(4)):
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)
    assert llm.stats()["computed_prefill_tokens"] == 532 + 7 * 4


def test_without_coordination_they_compute_it_eight_times(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    llm = make_llm(num_pages=320, single_flight="off", publication="on_finish")
    for output in llm.generate([tokens(532)] * 8, greedy(24)):
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)
    assert llm.stats()["computed_prefill_tokens"] == 8 * 532


def test_eight_questions_about_one_cold_document_compute_it_once(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    llm = make_llm(num_pages=320)
    prompts = [[*tokens(512), *tokens(20, start=100 + number)] for number in range(8)]
    for output in llm.generate(prompts, greedy(4)):
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)
    assert llm.stats()["computed_prefill_tokens"] == 512 + 8 * 20


@pytest.mark.parametrize("single_flight", FLIGHTS)
@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize(("when", "steps"), [("in prefill", 1), ("in decode", 5), ("at its last token", 8)])
def test_followers_of_a_leader_that_is_aborted_get_the_oracles_text(
    make_llm: MakeLLM, tiny_oracle: Oracle, single_flight: str, publication: str, when: str, steps: int
) -> None:
    llm = make_llm(single_flight=single_flight, publication=publication, max_batched_tokens=64)
    leader, *followers = (llm.engine.add_request(tokens(150), greedy(7)) for _ in range(3))
    for _ in range(steps):
        llm.engine.step()
        audit.check(llm.engine)
    aborted = llm.engine.abort(leader)
    assert aborted is not None and aborted.finish_reason == "abort", when
    ended = run(llm)
    for follower in followers:
        if follower in ended:
            tiny_oracle.assert_greedy(ended[follower].prompt_token_ids, ended[follower].token_ids)
    assert not llm.engine.requests


@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_requests_with_one_input_and_other_settings_share_pages_and_never_an_answer(
    make_llm: MakeLLM, single_flight: str
) -> None:
    each = [
        greedy(12),
        greedy(3),
        SamplingParams(max_tokens=12, temperature=0.9, seed=1),
        SamplingParams(max_tokens=12, temperature=0.9, seed=2),
    ]
    alone = [make_llm(single_flight="off").generate([tokens(40)], params)[0].token_ids for params in each]
    llm = make_llm(single_flight=single_flight)
    together = [output.token_ids for output in llm.generate([tokens(40)] * 4, each)]
    assert together == alone
    assert together[2] != together[3]
    assert llm.stats()["computed_prefill_tokens"] == 40 + 3 * 8


def test_distinct_prompts_take_as_many_steps_with_page_flights_as_without(make_llm: MakeLLM) -> None:
    num_steps = []
    for single_flight in ("off", "page"):
        llm = make_llm(num_pages=320, single_flight=single_flight)
        for number in range(8):
            llm.engine.add_request(tokens(300, start=10 + number), greedy(8))
        num_steps.append(0)
        while llm.engine.has_unfinished_requests:
            llm.engine.step()
            num_steps[-1] += 1
    assert num_steps[1] <= num_steps[0] * 1.02
