"""Pages in 8 and 4 bits: equal to a stock model whose cache is rounded alike, cold or warm, wherever the head ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.storage import KVStorage
from minivllm.config import ConfigError
from minivllm.models.loading import LoadedModel
from tests.engine.oracle import LOGIT_TOLERANCE, Oracle

MakeLLM = Callable[..., LLM]
GREEDY = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)
PAGE, GROUP = 16, 32  # the heads of `tiny` have 32 elements

ROUNDING_TOLERANCE = 0.1
"""Largest difference of a logit to the rounded oracle's: a key in the middle between two steps may go either way, by
the last bits of the product that made it. Measured: 0.025 on random tokens; 4 bits against full precision: 7."""


@cache
def rounded_oracle(bits: int, start: int = 0) -> Oracle:
    return Oracle("tiny", bits, GROUP, start)


def tokens(count: int, seed: int = 0) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(5, 500) for _ in range(count)]


def quantized(make_llm: MakeLLM, bits: int, **settings: object) -> LLM:
    return make_llm(**{"num_pages": 96, "kv_bits": bits, "kv_group_size": GROUP, **settings})


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("length", [1, 16, 17, 47, 300])
def test_logits_are_those_of_a_cache_that_is_rounded_alike_and_equal_cold_and_warm(
    make_llm: MakeLLM, bits: int, length: int
) -> None:
    llm, prompt = quantized(make_llm, bits, max_batched_tokens=64), tokens(length)
    cold = llm.logits(prompt)
    warm = llm.logits(prompt)
    assert len(warm) == length - (length - 1) // PAGE * PAGE
    assert np.abs(warm - cold[-len(warm) :]).max() <= LOGIT_TOLERANCE
    assert np.abs(cold - rounded_oracle(bits).logits(prompt)).max() <= ROUNDING_TOLERANCE


def test_four_bits_are_not_full_precision(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    prompt = tokens(300)
    difference = np.abs(quantized(make_llm, 4).logits(prompt) - tiny_oracle.logits(prompt)).max()
    assert difference > 10 * ROUNDING_TOLERANCE, "the comparisons with the rounded oracle could not fail"


@pytest.mark.parametrize("bits", [8, 4])
def test_greedy_text_is_equal_cold_and_warm_alone_and_in_a_batch(make_llm: MakeLLM, bits: int) -> None:
    llm = quantized(make_llm, bits)
    prompts = [tokens(70, seed) for seed in range(4)]
    cold = [llm.generate([prompt], GREEDY)[0] for prompt in prompts]
    warm = llm.generate(prompts, GREEDY)
    assert [output.token_ids for output in warm] == [output.token_ids for output in cold]
    assert {output.metrics.cached_tokens for output in warm} == {64}
    for output in warm:
        rounded_oracle(bits).assert_greedy(output.prompt_token_ids, output.token_ids, ROUNDING_TOLERANCE)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_restored_page_is_the_same_bytes(make_llm: MakeLLM, bits: int) -> None:
    llm = quantized(make_llm, bits, quantized_kv_start=16)
    storage, index = llm.engine.storage, llm.engine.manager.index
    llm.generate([tokens(70)], GREEDY)
    before = {page: storage.page_bytes(page) for page in index.page_ids()}
    assert len(before) == 4 and len({len(stored) for stored in before.values()}) == 2, "a head and three of the body"
    llm.generate([[*tokens(70), 9]], GREEDY)
    assert {page: storage.page_bytes(page) for page in before} == before


@pytest.mark.parametrize("start", [255, 256, 257])
@pytest.mark.parametrize("length", [250, 256, 257, 272, 273, 290])
def test_the_head_stays_exact_page_by_page_and_a_prefix_published_before_it_ends_is_hit_behind_it(
    make_llm: MakeLLM, start: int, length: int
) -> None:
    llm = quantized(make_llm, 4, quantized_kv_start=start, num_pages=80, max_active_requests=1)
    oracle = rounded_oracle(4, -(-start // PAGE) * PAGE)
    llm.generate([tokens(250)], GREEDY)
    (output,) = llm.generate([tokens(length)], GREEDY)
    assert output.metrics.cached_tokens == (min(length, 256) - 1) // PAGE * PAGE
    oracle.assert_greedy(output.prompt_token_ids, output.token_ids, ROUNDING_TOLERANCE)
    without_reuse = llm.logits([*tokens(length), *output.token_ids], use_cache=False)
    assert [int(row.argmax()) for row in without_reuse[length - 1 : -1]] == list(output.token_ids)


@pytest.mark.parametrize("kv_dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bits", [8, 4])
def test_bytes_per_page_of_the_arrays_are_those_of_the_formula(make_llm: MakeLLM, bits: int, kv_dtype: str) -> None:
    llm = quantized(make_llm, bits, kv_dtype=kv_dtype, num_pages=40, quantized_kv_start=16, max_active_requests=1)
    layout, storage, spec = llm.engine.layout, llm.engine.storage, llm.engine.spec
    null_rows = (layout.bytes_per_page + layout.bytes_per_head_page) // PAGE
    assert (layout.num_head_pages, layout.num_body_pages) == (2, 38)
    assert storage.num_bytes - null_rows == layout.num_bytes == llm.engine.kv_cache_bytes
    dtype_bytes = 4 if kv_dtype == "float32" else 2
    per_head = spec.head_dim * bits // 8 + spec.head_dim // GROUP * 2 * dtype_bytes
    assert layout.bytes_per_page == 2 * spec.num_layers * spec.num_kv_heads * per_head * PAGE
    assert len(storage.page_bytes(2)) == layout.bytes_per_page
    assert len(storage.page_bytes(1)) == layout.bytes_per_head_page
    assert llm.generate([tokens(40)], GREEDY)[0].finish_reason == "length"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("bits", [8, 4])
def test_a_number_that_is_not_finite_is_still_none_after_it_was_quantized(
    tiny: LoadedModel, bits: int, value: float
) -> None:
    storage = KVStorage(tiny.spec, 2, 2, KVFormat("float32", bits, GROUP))
    kv = np.ones((2, tiny.spec.num_kv_heads, tiny.spec.head_dim), np.float32)
    kv[1, 0, 7] = value
    rows = mx.array(np.arange(2, dtype=np.int32))
    storage.write(0, rows, mx.array(kv), mx.array(kv))
    for read in (storage.read_keys(0, rows), storage.read_values(0, rows)):
        finite = np.isfinite(np.array(read))
        assert finite[0].all() and finite[1, 1].all(), "other tokens and other heads keep their numbers"
        assert not finite[1, 0].any()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_planted_number_that_is_not_finite_fails_the_request_and_is_not_published(
    make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    llm = quantized(make_llm, 8)
    write = llm.engine.storage.write

    def spoil_one_value(layer: int, rows: mx.array, keys: mx.array, values: mx.array) -> None:
        values[3, 0, 5] = value
        write(layer, rows, keys, values)

    with monkeypatch.context() as patch:
        patch.setattr(llm.engine.storage, "write", spoil_one_value)
        (output,) = llm.generate([tokens(40)], GREEDY)
    assert (output.finish_reason, output.token_ids) == ("error", ())
    assert llm.stats()["published_tokens"] == 0
    (again,) = llm.generate([tokens(40)], GREEDY)
    rounded_oracle(8).assert_greedy(tokens(40), again.token_ids, ROUNDING_TOLERANCE)


def test_decoding_never_builds_the_dequantized_cache(make_llm: MakeLLM) -> None:
    """The peak of a decode step stays far below the keys and values it reads in full precision."""
    llm = quantized(make_llm, 8, num_pages=300, debug_poison_pages=False)
    request = llm.engine.add_request(tokens(4_000), SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True))
    while llm.engine.requests[0].is_prefilling:
        llm.engine.step()
    llm.engine.step()
    mx.clear_cache()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    llm.engine.step()
    spec = llm.engine.spec
    dequantized_layer = 2 * 4_000 * spec.num_kv_heads * spec.head_dim * 4
    assert mx.get_peak_memory() - before < dequantized_layer * 0.75, "not even that of one layer"
    llm.engine.abort(request)


def test_a_group_that_does_not_divide_the_head_is_refused_when_the_engine_starts(make_llm: MakeLLM) -> None:
    with pytest.raises(ConfigError, match="kv_group_size=64 does not divide the head size 32: give kv_group_size 32"):
        make_llm(kv_bits=8)


@pytest.mark.parametrize("single_flight", ["off", "release_after_prefill", "page"])
@pytest.mark.parametrize("publication", ["on_finish", "incremental", "on_schedule"])
def test_publication_and_flights_work_as_in_full_precision(
    make_llm: MakeLLM, single_flight: str, publication: str
) -> None:
    counts = []
    for settings in ({}, {"kv_bits": 8, "kv_group_size": GROUP, "quantized_kv_start": 20}):
        llm = make_llm(num_pages=128, single_flight=single_flight, publication=publication, **settings)
        outputs = llm.generate([[*tokens(100), 9 + number // 2] for number in range(4)], GREEDY)
        counts.append({**llm.stats(), "pages_cached": 0, "pages_free": 0})
        for output in outputs[: 4 if settings else 0]:
            rounded_oracle(8, 32).assert_greedy(output.prompt_token_ids, output.token_ids, ROUNDING_TOLERANCE)
    assert counts[0] == counts[1]


@pytest.mark.timeout(300)
def test_a_random_walk_with_pages_in_two_precisions_equals_the_oracle(make_llm: MakeLLM) -> None:
    draw = random.Random(3)
    llm = quantized(make_llm, 4, num_pages=13, quantized_kv_start=20, admission="optimistic", max_batched_tokens=24)
    params = SamplingParams(max_tokens=25, temperature=0.0, ignore_eos=True)
    prefixes = [tokens(length, seed=5) for length in (0, 16, 33, 50)]
    prompts: dict[str, list[int]] = {}
    for _ in range(400):
        if len(prompts) < 4 and draw.random() < 0.4:
            prompt = [*draw.choice(prefixes), *tokens(draw.randint(1, 30), seed=draw.randrange(5))]
            prompts[llm.engine.add_request(prompt, params)] = prompt
        for output in llm.engine.step() if prompts else []:
            if output.finish_reason is not None:
                rounded_oracle(4, 32).assert_greedy(
                    prompts.pop(output.request_id), output.token_ids, ROUNDING_TOLERANCE
                )
    while prompts:
        for output in llm.engine.step():
            if output.finish_reason is not None:
                del prompts[output.request_id]
    stats = llm.stats()
    assert min(stats["evicted_tokens"], stats["restored_tokens"], stats["preemptions"]) > 0, "the walk went places"
