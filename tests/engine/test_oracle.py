"""Cold and warm, at every boundary, against stock mlx-lm on the same weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from tests.engine.oracle import LOGIT_TOLERANCE, Oracle

BOUNDARY_LENGTHS = (1, 15, 16, 17, 31, 32, 33, 48, 200)
GREEDY = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module", params=["tiny", "smollm2-135m"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def oracle(model: str) -> Oracle:
    return Oracle(model)


@pytest.fixture
def llm(model: str, make_llm: Callable[..., LLM]) -> LLM:
    return make_llm(model, num_pages=64)


def prompt_of(length: int, model: str) -> list[int]:
    vocabulary = 400 if model == "tiny" else 40_000
    return [int(token) for token in np.random.default_rng(length).integers(5, vocabulary, length)]


def cached_after_a_run(length: int) -> int:
    """Whole pages, and at least one token left to compute."""
    return (length - 1) // 16 * 16


@pytest.mark.parametrize("length", BOUNDARY_LENGTHS)
def test_cold_and_warm_greedy_text_equals_the_oracles(llm: LLM, oracle: Oracle, model: str, length: int) -> None:
    prompt = prompt_of(length, model)
    cold, warm = (llm.generate([prompt], GREEDY)[0] for _ in range(2))
    assert cold.metrics.cached_tokens == 0
    assert warm.metrics.cached_tokens == cached_after_a_run(length)
    assert warm.metrics.computed_tokens == length - warm.metrics.cached_tokens >= 1
    assert warm.text == cold.text
    oracle.assert_greedy(prompt, cold.token_ids)
    oracle.assert_greedy(prompt, warm.token_ids)


@pytest.mark.parametrize("length", BOUNDARY_LENGTHS)
def test_cold_and_warm_logits_agree_with_the_oracles(llm: LLM, oracle: Oracle, model: str, length: int) -> None:
    prompt = prompt_of(length, model)
    expected = oracle.logits(prompt)
    cold, warm = llm.logits(prompt), llm.logits(prompt)
    assert cold.shape == expected.shape
    assert len(warm) == length - cached_after_a_run(length)
    np.testing.assert_allclose(cold, expected, rtol=0, atol=LOGIT_TOLERANCE)
    np.testing.assert_allclose(warm, expected[-len(warm) :], rtol=0, atol=LOGIT_TOLERANCE)


def test_a_third_prompt_still_hits_every_full_page_after_a_whole_prompt_was_cached(llm: LLM, model: str) -> None:
    prompt = prompt_of(48, model)
    for _ in range(2):
        llm.generate([prompt], GREEDY)
    third = llm.generate([prompt + [9] * 16], GREEDY)[0]
    assert third.metrics.cached_tokens == 48


def test_a_restored_page_holds_the_same_bytes_as_the_page_that_was_computed(llm: LLM, model: str) -> None:
    prompt = prompt_of(40, model)
    llm.generate([prompt], GREEDY)
    before = [llm.engine.storage.page_arrays(page) for page in llm.engine.manager.index.page_ids()]
    llm.generate([prompt], GREEDY)
    after = [llm.engine.storage.page_arrays(page) for page in llm.engine.manager.index.page_ids()]
    np.testing.assert_array_equal(before, after)


def test_mlx_lms_own_token_by_token_generation_gives_the_same_text(llm: LLM, oracle: Oracle, model: str) -> None:
    prompt = llm.tokenizer.encode("The archive keeps one copy of every")
    answer = llm.generate([prompt], SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True))[0]
    assert llm.tokenizer.decode(oracle.greedy(prompt, 24)) == answer.text
