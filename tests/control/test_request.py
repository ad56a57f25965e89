"""What a request may ask for, and what it says about itself."""

from __future__ import annotations

from typing import Any

import pytest

from minivllm.config import SamplingParams
from minivllm.request import (
    ContextLengthExceededError,
    InvalidTokenError,
    Request,
    RequestError,
    RequestLimits,
    Status,
)

LIMITS = RequestLimits(vocab_size=100, max_model_len=64, pool_tokens=48)


@pytest.mark.parametrize("token_id", [-1, 100, 2**63, 1.5, True, None, "5", [1]])
def test_a_token_id_outside_the_vocabulary_is_refused_by_value(token_id: Any) -> None:
    with pytest.raises(InvalidTokenError) as error:
        LIMITS.check([5, token_id], SamplingParams())
    assert str(token_id) in str(error.value)
    assert (error.value.code, error.value.param) == ("invalid_token_id", "prompt")


def test_both_ends_of_the_vocabulary_are_accepted() -> None:
    LIMITS.check([0, 99], SamplingParams(stop_token_ids=[0, 99]))


@pytest.mark.parametrize("token_id", [-1, 105])
def test_a_stop_token_outside_the_vocabulary_is_refused(token_id: int) -> None:
    with pytest.raises(InvalidTokenError, match=f"{token_id} is outside the vocabulary of 0 to 99") as error:
        LIMITS.check([5], SamplingParams(stop_token_ids=[token_id]))
    assert error.value.param == "stop_token_ids"


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(RequestError, match="the prompt has no tokens: give at least one") as error:
        LIMITS.check([], SamplingParams())
    assert (error.value.code, error.value.param) == ("invalid_request", "prompt")


@pytest.mark.parametrize(
    ("context", "pool", "num_prompt", "max_tokens", "holder"),
    [
        (64, 128, 64, 1, None),
        (64, 128, 60, 5, None),
        (64, 128, 64, 2, "the context holds 64 tokens"),
        (64, 128, 65, 1, "the context holds 64 tokens"),
        (64, 48, 48, 1, None),
        (64, 48, 48, 2, "the page pool holds 48 tokens"),
        (64, 48, 1, 48, None),
        (64, 48, 1, 49, "the page pool holds 48 tokens"),
    ],
)
def test_the_last_sampled_token_needs_no_room(
    context: int, pool: int, num_prompt: int, max_tokens: int, holder: str | None
) -> None:
    limits = RequestLimits(vocab_size=100, max_model_len=context, pool_tokens=pool)
    if holder is None:
        limits.check([5] * num_prompt, SamplingParams(max_tokens=max_tokens))
        return
    with pytest.raises(ContextLengthExceededError, match=holder) as error:
        limits.check([5] * num_prompt, SamplingParams(max_tokens=max_tokens))
    assert error.value.code == "context_length_exceeded"


@pytest.mark.parametrize("num_prompt", [1, 20, 47, 48])
def test_the_longest_answer_told_is_the_longest_answer_accepted(num_prompt: int) -> None:
    longest = LIMITS.max_tokens_after(num_prompt)
    LIMITS.check([5] * num_prompt, SamplingParams(max_tokens=longest))
    with pytest.raises(ContextLengthExceededError):
        LIMITS.check([5] * num_prompt, SamplingParams(max_tokens=longest + 1))


def test_no_answer_fits_behind_a_prompt_that_is_too_long() -> None:
    assert LIMITS.max_tokens_after(49) < 1


def test_a_request_keeps_its_prompt_and_its_answer_apart() -> None:
    prompt = [1, 2, 3]
    request = Request("r", prompt, SamplingParams(max_tokens=4), None, arrived_at=10.0)
    request.token_ids += [7, 8]
    assert (request.prompt_token_ids, request.output_token_ids) == ([1, 2, 3], [7, 8])
    assert prompt == [1, 2, 3]
    assert (request.num_output_tokens, request.num_uncomputed_tokens, request.max_kv_tokens) == (2, 5, 6)


def test_a_request_is_in_prefill_until_its_whole_prompt_has_kv() -> None:
    request = Request("r", [1, 2, 3], SamplingParams(), None, 0.0)
    states = []
    for request.num_computed_tokens in range(5):
        states.append(request.is_prefilling)
    assert states == [True, True, True, False, False]


def test_a_request_for_prompt_logprobs_does_not_read_the_cache_and_wants_every_row_of_its_prompt() -> None:
    request = Request("r", [1, 2, 3], SamplingParams(prompt_logprobs=0), None, 0.0)
    assert not request.reads_prefix_cache and request.wants_all_logits
    assert request.prompt_logprobs == [None]
    request.num_computed_tokens = 3
    assert not request.wants_all_logits


def test_an_ordinary_request_reads_the_cache_and_wants_its_last_row_only() -> None:
    request = Request("r", [1, 2, 3], SamplingParams(), None, 0.0)
    assert request.reads_prefix_cache and not request.wants_all_logits
    assert (request.logprobs, request.prompt_logprobs) == (None, None)


def test_the_end_of_a_request_says_why_and_when() -> None:
    request = Request("r", [1, 2, 3], SamplingParams(), None, arrived_at=10.0)
    request.end("stop", 12.5, stop_reason="\n")
    assert (request.status, request.finish_reason, request.stop_reason) == (Status.ENDED, "stop", "\n")
    assert request.metrics.e2e_s == 2.5
    last = request.metrics.events[-1]
    assert (last.name, last.at_s, last.tokens) == ("ended:stop", 2.5, 3)


def test_what_was_not_measured_is_none_and_not_zero() -> None:
    metrics = Request("r", [1], SamplingParams(), None, 0.0).metrics
    assert (metrics.queue_s, metrics.prefill_s, metrics.ttft_s, metrics.decode_s, metrics.e2e_s) == (None,) * 5
