"""What is published by a run, and what a later request may make of it. Every answer is the oracle's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from minivllm.cache import audit
from minivllm.request import RequestOutput
from tests.engine.oracle import Oracle

MakeLLM = Callable[..., LLM]


def greedy(max_tokens: int, **settings: object) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True, **settings)  # type: ignore[arg-type]


def tokens(count: int, start: int = 5) -> list[int]:
    return list(range(start, start + count))


def follow_up(llm: LLM, first: RequestOutput) -> RequestOutput:
    """The next turn: everything so far, and four tokens more."""
    return llm.generate([[*first.prompt_token_ids, *first.token_ids, 9, 9, 9, 9]], greedy(4))[0]


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
@pytest.mark.parametrize("total", [16, 32, 48])
def test_the_page_of_the_last_sampled_token_is_not_published_after_length(
    make_llm: MakeLLM, tiny_oracle: Oracle, publication: str, total: int
) -> None:
    llm = make_llm(publication=publication)
    first = llm.generate([tokens(total - 3)], greedy(3))[0]
    assert first.metrics.published_tokens == total - 16
    second = follow_up(llm, first)
    assert second.metrics.cached_tokens == total - 1, "whole pages and the slot's partial one: all that had KV"
    tiny_oracle.assert_greedy(second.prompt_token_ids, second.token_ids)


def test_the_page_of_the_last_sampled_token_is_not_published_after_a_stop_string(
    make_llm: MakeLLM, tiny_oracle: Oracle
) -> None:
    llm = make_llm()
    whole = llm.generate([tokens(13)], greedy(3))[0]
    llm.reset_prefix_cache()
    first = llm.generate([tokens(13)], greedy(20, stop=[whole.text[-1]]))[0]
    assert first.finish_reason == "stop"
    assert first.metrics.published_tokens <= (13 + len(first.token_ids) - 1) // 16 * 16
    second = follow_up(llm, first)
    tiny_oracle.assert_greedy(second.prompt_token_ids, second.token_ids)


def test_the_page_of_a_stop_token_is_not_published(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    llm = make_llm()
    answer = llm.generate([tokens(13)], greedy(3))[0].token_ids
    llm.reset_prefix_cache()
    first = llm.generate([tokens(13)], greedy(20, stop_token_ids=[answer[2]]))[0]
    assert (first.finish_reason, first.stop_reason) == ("stop", answer[2])
    assert first.token_ids == answer[: answer.index(answer[2]) + 1]
    second = follow_up(llm, first)
    tiny_oracle.assert_greedy(second.prompt_token_ids, second.token_ids)


@pytest.mark.parametrize("publication", ["incremental", "on_finish", "on_schedule"])
def test_a_cancel_in_decode_leaves_only_valid_pages_behind(
    make_llm: MakeLLM, tiny_oracle: Oracle, publication: str
) -> None:
    llm = make_llm(publication=publication)
    request_id = llm.engine.add_request(tokens(13), greedy(20))
    for _ in range(4):
        llm.engine.step()
    first = llm.engine.abort(request_id)
    assert first is not None and first.finish_reason == "abort" and len(first.token_ids) == 4
    second = follow_up(llm, first)
    assert second.metrics.cached_tokens == 16
    tiny_oracle.assert_greedy(second.prompt_token_ids, second.token_ids)


def test_a_cancel_before_prefill_ends_keeps_what_was_published_and_frees_the_rest(
    make_llm: MakeLLM, tiny_oracle: Oracle
) -> None:
    llm = make_llm(num_pages=8, max_batched_tokens=16)
    prompt = tokens(64)
    request_id = llm.engine.add_request(prompt, greedy(4))
    for _ in range(2):
        llm.engine.step()
    llm.engine.abort(request_id)
    audit.check(llm.engine)
    assert llm.stats()["pages_cached"] == 2
    other = llm.generate([tokens(60, start=100)], greedy(4))[0]
    again = llm.generate([prompt], greedy(4))[0]
    assert again.metrics.cached_tokens == 32
    for output in (other, again):
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


def test_two_cold_requests_in_one_step_compute_the_shared_pages_twice_and_keep_them_once(
    make_llm: MakeLLM, tiny_oracle: Oracle
) -> None:
    llm = make_llm(max_batched_tokens=128, single_flight="off")
    outputs = llm.generate([[*tokens(40), 1], [*tokens(40), 2]], greedy(4))
    assert [output.metrics.cached_tokens for output in outputs] == [0, 0]
    assert llm.stats()["published_tokens"] == 32
    for output in outputs:
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


def test_a_duplicate_page_is_replaced_in_its_owners_table_before_it_is_freed(
    make_llm: MakeLLM, tiny_oracle: Oracle
) -> None:
    llm = make_llm(num_pages=6, max_batched_tokens=8, single_flight="off")
    first, second = (llm.engine.add_request(tokens(32), greedy(count)) for count in (1, 21))
    outputs = {}
    third = ""
    while llm.engine.has_unfinished_requests:
        for output in llm.engine.step():
            outputs[output.request_id] = output
        audit.check(llm.engine)
        if not third and first in outputs and outputs[first].finish_reason:
            third = llm.engine.add_request(tokens(20, start=200), greedy(8))
    assert len(outputs[second].token_ids) == 21
    for output in outputs.values():
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


def test_the_same_tokens_under_another_salt_are_not_found(make_llm: MakeLLM) -> None:
    llm = make_llm()
    for salt in ("a", "b", None):
        assert llm.generate([tokens(40)], greedy(1), cache_salt=salt)[0].metrics.cached_tokens == 0
    for salt in ("a", "b", None):
        assert llm.generate([tokens(40)], greedy(1), cache_salt=salt)[0].metrics.cached_tokens == 32


@pytest.mark.parametrize(("shared", "hit"), [(15, 0), (16, 16), (31, 16), (32, 32), (239, 224)])
def test_a_shared_prefix_is_reused_in_whole_pages(make_llm: MakeLLM, shared: int, hit: int) -> None:
    llm = make_llm()
    llm.generate([[*tokens(shared), 400, 401]], greedy(1))
    assert llm.generate([[*tokens(shared), 402, 403]], greedy(1))[0].metrics.cached_tokens == hit


def test_with_the_cache_off_nothing_is_queried_restored_or_kept(make_llm: MakeLLM) -> None:
    llm = make_llm(prefix_cache=False)
    for _ in range(2):
        assert llm.generate([tokens(64)], greedy(4))[0].metrics.cached_tokens == 0
    stats = llm.stats()
    counts = (
        "lookup_requests",
        "queried_tokens",
        "hit_requests",
        "restored_tokens",
        "published_tokens",
        "pages_cached",
    )
    assert [stats[name] for name in counts] == [0] * 6


def test_logits_with_the_cache_compute_only_the_rest(make_llm: MakeLLM) -> None:
    llm = make_llm()
    assert len(llm.logits(tokens(40))) == 40
    assert len(llm.logits(tokens(40))) == 8
    assert len(llm.logits(tokens(40), use_cache=False)) == 40


def test_prompt_logprobs_do_not_read_the_cache_and_equal_the_oracles(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    llm = make_llm(max_batched_tokens=24)
    prompt = tokens(33)
    expected = tiny_oracle.logits(prompt)
    for _ in range(2):
        output = llm.generate([prompt], greedy(1, prompt_logprobs=0, logprobs=1))[0]
        assert output.metrics.cached_tokens == 0
        assert output.prompt_logprobs is not None and len(output.prompt_logprobs) == 33
        assert output.prompt_logprobs[0] is None
        for position, entry in enumerate(output.prompt_logprobs[1:]):
            row = expected[position].astype(np.float64)
            right = row[prompt[position + 1]] - np.logaddexp.reduce(row)
            assert entry is not None and entry.token_id == prompt[position + 1]
            assert entry.logprob == pytest.approx(right, abs=1e-3)
    assert llm.generate([prompt], greedy(1))[0].metrics.cached_tokens == 32, "such a request may still fill the cache"


def test_pages_expire_after_their_time_without_use(make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    llm = make_llm(prefix_ttl_s=60.0)
    monkeypatch.setattr(llm.engine.manager, "_clock", lambda: now[0])
    llm.generate([tokens(40)], greedy(1))
    now[0] += 59
    assert llm.generate([tokens(40)], greedy(1))[0].metrics.cached_tokens == 32
    now[0] += 61
    assert llm.generate([tokens(40)], greedy(1))[0].metrics.cached_tokens == 0


def test_logits_without_the_cache_do_not_depend_on_what_is_cached(make_llm: MakeLLM) -> None:
    llm = make_llm(max_batched_tokens=16)
    expected = llm.logits(tokens(40))
    for values in llm.engine.storage.values:  # spoil every page: only what is computed anew can be right
        values[:-1] = 7.0
    np.testing.assert_array_equal(llm.logits(tokens(40), use_cache=False), expected)
    llm.reset_prefix_cache()


def test_pages_past_their_time_are_no_longer_counted_as_cached(
    make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = make_llm(prefix_ttl_s=60.0)
    llm.generate([tokens(40)], greedy(1))
    assert llm.stats()["pages_cached"] == 2
    monkeypatch.setattr(llm.engine.manager, "_clock", lambda: 1e12)
    assert llm.stats()["pages_cached"] == 0
