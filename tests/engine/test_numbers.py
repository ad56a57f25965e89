"""Stale, poisoned and out-of-range values: none of them ever becomes a plausible token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.storage import KVStorage
from minivllm.models.loading import LoadedModel
from minivllm.runner import ForwardResult
from minivllm.scheduler import Work
from tests.engine.oracle import Oracle

MakeLLM = Callable[..., LLM]
GREEDY = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)


def test_stale_nan_in_free_pages_reaches_no_answer(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    llm = make_llm(num_pages=8)
    prompts = [list(range(5, 25)), list(range(30, 67))]
    for output in llm.generate(prompts, GREEDY):
        assert output.error is None
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_ends_its_request_with_an_error_and_is_not_published(
    make_llm: MakeLLM, tiny_oracle: Oracle, value: float
) -> None:
    llm = make_llm(max_batched_tokens=16)
    sick = llm.engine.add_request(list(range(5, 45)), GREEDY)
    llm.engine.step()
    well = llm.engine.add_request(list(range(100, 120)), GREEDY)
    sick_page = llm.engine.requests[0].page_table[0]
    rows = mx.array(llm.engine.storage.rows_of([sick_page], 16))
    for values in llm.engine.storage.values:
        values[rows] = mx.array(value)
    ended = {}
    while llm.engine.has_unfinished_requests:
        ended.update({output.request_id: output for output in llm.engine.step() if output.finish_reason})
    assert ended[sick].finish_reason == "error" and "not finite" in str(ended[sick].error)
    assert ended[sick].token_ids == ()
    assert ended[sick].metrics.published_tokens == 16, "only the page that was sound when it was computed"
    assert ended[well].finish_reason == "length"
    tiny_oracle.assert_greedy(ended[well].prompt_token_ids, ended[well].token_ids)


def test_infinite_logits_of_a_finite_state_end_the_request(make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm()
    monkeypatch.setattr(
        type(llm.engine._runner._decoder), "logits", lambda _, hidden: mx.full((len(hidden), 512), float("inf"))
    )
    output = llm.generate([list(range(5, 15))], GREEDY)[0]
    assert (output.finish_reason, output.token_ids) == ("error", ())


@pytest.mark.parametrize("publication", ["incremental", "on_schedule"])
def test_a_failed_forward_pass_ends_its_requests_and_publishes_nothing(
    make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch, publication: str
) -> None:
    llm = make_llm(publication=publication)
    request_id = llm.engine.add_request(list(range(5, 45)), GREEDY)

    def broken(*_: object) -> None:
        raise RuntimeError("device lost")

    with monkeypatch.context() as patch:
        patch.setattr(llm.engine._runner, "forward", broken)
        (output,) = llm.engine.step()
    assert (output.request_id, output.finish_reason) == (request_id, "error")
    assert "device lost" in str(output.error)
    assert llm.stats()["published_tokens"] == 0
    assert llm.generate([list(range(5, 45))], GREEDY)[0].finish_reason == "length"


def test_pages_published_ahead_of_a_pass_that_fails_are_withdrawn_from_everybody(
    make_llm: MakeLLM, tiny_oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = make_llm(publication="on_schedule", single_flight="off")
    prompts = [list(range(5, 45)), list(range(5, 60)), list(range(100, 120))]
    ids = [llm.engine.add_request(prompt, GREEDY) for prompt in prompts]
    forward = llm.engine._runner.forward

    def first_is_sick(work: Sequence[Work]) -> ForwardResult:
        result = forward(work)
        assert [item.num_tokens for item in work] == [40, 23, 20], "the second attached what the first computes"
        return replace(result, is_finite=(False, *result.is_finite[1:]))

    with monkeypatch.context() as patch:
        patch.setattr(llm.engine._runner, "forward", first_is_sick)
        outputs = llm.engine.step()
    assert [(output.request_id, output.finish_reason) for output in outputs] == [(ids[0], "error"), (ids[2], None)]
    assert llm.stats()["published_tokens"] == 16
    ended = {}
    while llm.engine.has_unfinished_requests:
        ended.update({output.request_id: output for output in llm.engine.step() if output.finish_reason})
    for request_id, prompt in zip(ids[1:], prompts[1:], strict=True):
        tiny_oracle.assert_greedy(prompt, ended[request_id].token_ids)


@pytest.mark.parametrize("page_table", [[0, -1], [0, 4], [4], [10**6]])
def test_a_page_id_outside_the_pool_never_reaches_an_array(tiny: LoadedModel, page_table: list[int]) -> None:
    storage = KVStorage(tiny.spec, num_pages=4, page_size=2, kv_format=KVFormat("float32"))
    with pytest.raises(IndexError, match="pool of 4 pages"):
        storage.rows_of(page_table, len(page_table) * 2)


def test_a_sequence_longer_than_its_page_table_is_refused(tiny: LoadedModel) -> None:
    storage = KVStorage(tiny.spec, num_pages=4, page_size=2, kv_format=KVFormat("float32"))
    with pytest.raises(IndexError, match="2 pages does not hold 5 tokens"):
        storage.rows_of([0, 1], 5)


def test_rows_of_a_page_table_follow_its_order(tiny: LoadedModel) -> None:
    storage = KVStorage(tiny.spec, num_pages=4, page_size=2, kv_format=KVFormat("float32"))
    assert storage.rows_of([3, 0], 3).tolist() == [6, 7, 0]
    assert storage.rows_of([], 0).tolist() == []


def test_writing_pages_copies_no_pool(tiny: LoadedModel) -> None:
    """In place means: the peak stays a few rows above the pool itself, however many writes there are."""
    storage = KVStorage(tiny.spec, num_pages=4096, page_size=16, kv_format=KVFormat("float32"))
    kv = mx.ones((64, tiny.spec.num_kv_heads, tiny.spec.head_dim))
    rows = mx.array(np.arange(64, dtype=np.int32))
    mx.eval(kv, rows)
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    for _ in range(20):
        for layer in range(tiny.spec.num_layers):
            storage.write(layer, rows, kv, kv)
            mx.eval(storage.read_keys(layer, rows), storage.read_values(layer, rows))
    one_array = storage.keys[0].nbytes
    assert mx.get_peak_memory() - before < one_array / 2


def test_a_step_copies_no_pool(make_llm: MakeLLM) -> None:
    llm = make_llm(num_pages=8192, debug_poison_pages=False)
    llm.generate([list(range(5, 45))], GREEDY)
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    llm.generate([list(range(105, 145))], GREEDY)
    assert mx.get_peak_memory() - before < llm.engine.storage.keys[0].nbytes


def test_bytes_per_page_are_those_of_the_arrays(make_llm: MakeLLM) -> None:
    for kv_dtype, size in (("float32", 4), ("float16", 2), ("bfloat16", 2)):
        llm = make_llm(kv_dtype=kv_dtype, num_pages=7)
        spec, storage = llm.engine.spec, llm.engine.storage
        assert llm.engine.bytes_per_page == 2 * spec.num_layers * spec.num_kv_heads * spec.head_dim * 16 * size
        assert storage.num_bytes == 7 * llm.engine.bytes_per_page + llm.engine.bytes_per_page // 16
        output = llm.generate([list(range(5, 45))], GREEDY)[0]
        assert output.finish_reason == "length"


def test_sixteen_bit_pages_give_equal_text_cold_and_warm_and_for_every_chunk_size(make_llm: MakeLLM) -> None:
    texts = set()
    for chunk_tokens in (7, 16, 64):
        llm = make_llm(kv_dtype="float16", max_batched_tokens=chunk_tokens)
        texts |= {llm.generate([list(range(5, 65))], GREEDY)[0].text for _ in range(2)}
    assert len(texts) == 1
