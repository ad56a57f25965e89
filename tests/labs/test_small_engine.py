from __future__ import annotations

import numpy as np
import pytest

from labs.kit.attention_tap import attention_tap
from labs.kit.small_engine import first_tokens, prefill_all, rows_held_and_written, small_llm
from minivllm import SamplingParams
from minivllm.models.loading import LoadedModel, load_model


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model("tiny")


def test_rows_are_counted_in_the_memory_itself(loaded: LoadedModel) -> None:
    with small_llm(loaded) as llm:
        prefill_all(llm, [[5] * 10, [6] * 4])
        held, written = rows_held_and_written(llm)
        tokens = sum(request.num_computed_tokens for request in llm.engine.requests)
        pages = sum(len(request.page_table) for request in llm.engine.requests)
    assert (held, written) == (pages * 4, tokens) and tokens >= 14


def test_prompts_stay_until_all_of_them_are_computed(loaded: LoadedModel) -> None:
    with small_llm(loaded, num_pages=64, max_batched_tokens=8) as llm:
        prefill_all(llm, [[5] * 20, [6] * 20])
        assert [request.is_prefilling for request in llm.engine.requests] == [False, False]


def test_tokens_are_cut_to_a_count_that_is_the_same_for_every_model(loaded: LoadedModel) -> None:
    assert first_tokens(loaded, "one two three", 3) == loaded.tokenizer.encode("one two three", False)[:3]
    with pytest.raises(ValueError, match="give a longer text"):
        first_tokens(loaded, "a", 9)


def test_the_tap_copies_what_the_engine_attends_and_takes_itself_away(loaded: LoadedModel) -> None:
    with small_llm(loaded) as llm:
        own = llm.engine.runner.attention
        with attention_tap(llm.engine, layer=1) as tap:
            prefill_all(llm, [[5, 6, 7, 8, 9], [9, 8, 7]], max_tokens=4)
            llm.engine.step()
        assert llm.engine.runner.attention is own
        tables = [tuple(request.page_table) for request in llm.engine.requests]
        tokens = [request.num_computed_tokens for request in llm.engine.requests]
        answer = llm.generate([[5, 6, 7]], SamplingParams(max_tokens=2, temperature=0.0))[0]
    assert [row.page_table for row in tap.rows] == tables and [row.num_tokens for row in tap.rows] == tokens
    assert tap.rows[0].out.shape == tap.rows[0].queries.shape == (loaded.spec.num_heads, loaded.spec.head_dim)
    assert answer.metrics.prompt_tokens == 3


def test_a_head_differs_when_it_is_away_or_nan(loaded: LoadedModel) -> None:
    with small_llm(loaded) as llm, attention_tap(llm.engine, layer=0) as tap:
        prefill_all(llm, [[5, 6, 7]], max_tokens=4)
        llm.engine.step()
    (call,) = tap.rows
    assert call.heads_that_differ(call.out) == 0
    changed = call.out.copy()
    changed[0, 0], changed[1, 0] = np.nan, changed[1, 0] + 0.1
    assert call.heads_that_differ(changed) == 2
