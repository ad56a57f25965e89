"""Continuous batching: who shares a forward pass, and that it changes nothing in the answers."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.attention.portable import PortableAttention
from minivllm.cache.page_pool import RefCountedPagePool
from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.config import ConfigError
from minivllm.models.loading import load_model
from minivllm.request import CacheBusyError, ContextLengthExceededError, InvalidTokenError, RequestError
from minivllm.scheduler import Work
from tests.engine.oracle import Oracle

MakeLLM = Callable[..., LLM]


def greedy(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)


def watch_steps(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """(first token, end) of every work of every forward pass from now on."""
    steps: list[list[tuple[int, int]]] = []
    forward = llm.engine._runner.forward

    def watched(work: list[Work]) -> object:
        steps.append([(item.start, item.end) for item in work])
        return forward(work)

    monkeypatch.setattr(llm.engine._runner, "forward", watched)
    return steps


def test_decode_rows_and_a_prefill_chunk_share_one_forward_pass(
    make_llm: MakeLLM, tiny_oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = make_llm(max_batched_tokens=17)
    steps = watch_steps(llm, monkeypatch)
    llm.engine.add_request(list(range(5, 15)), greedy(4))
    llm.engine.step()
    llm.engine.add_request(list(range(50, 82)), greedy(2))
    while llm.engine.has_unfinished_requests:
        for output in llm.engine.step():
            tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)
    assert steps == [[(0, 10)], [(10, 11), (0, 16)], [(11, 12), (16, 32)], [(12, 13), (32, 33)]]


def test_a_batch_of_unequal_lengths_answers_as_each_request_alone(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    llm = make_llm(max_active_requests=5)
    prompts = [list(range(5, 5 + length)) for length in (1, 15, 16, 37, 200)]
    for output in llm.generate(prompts, greedy(12)):
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


def test_identical_requests_in_one_batch_get_identical_answers(make_llm: MakeLLM) -> None:
    llm = make_llm(prefix_cache=False)
    outputs = llm.generate([list(range(5, 28))] * 4, greedy(10))
    assert len({output.token_ids for output in outputs}) == 1


@pytest.mark.parametrize("chunk_tokens", [1, 3, 16, 64])
def test_the_size_of_a_chunk_does_not_change_the_answer(
    make_llm: MakeLLM, tiny_oracle: Oracle, chunk_tokens: int
) -> None:
    llm = make_llm(max_batched_tokens=chunk_tokens)
    output = llm.generate([list(range(5, 55))], greedy(6))[0]
    tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


def test_mlx_own_kernel_gives_the_same_answers_as_two_products(make_llm: MakeLLM, tiny_oracle: Oracle) -> None:
    """The path of GPUs, run here on the CPU."""
    llm = make_llm(max_batched_tokens=20)
    llm.engine.runner.attention = PortableAttention(llm.engine.storage, fused=True)
    for output in llm.generate([list(range(5, 55)), list(range(5, 30)), [7]], greedy(6)):
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)


@pytest.mark.parametrize(
    ("length", "max_tokens", "fits"), [(127, 1, True), (127, 2, True), (128, 1, True), (128, 2, False), (129, 1, False)]
)
def test_a_request_that_can_never_fit_is_refused_at_once_and_holds_up_nobody(
    make_llm: MakeLLM, length: int, max_tokens: int, fits: bool
) -> None:
    llm = make_llm(num_pages=8)
    prompt = [5 + i % 300 for i in range(length)]
    if fits:
        assert llm.generate([prompt], greedy(max_tokens))[0].finish_reason == "length"
    else:
        with pytest.raises(ContextLengthExceededError, match="the page pool holds 128 tokens"):
            llm.engine.add_request(prompt, greedy(max_tokens))
    assert llm.generate([list(range(5, 15))], greedy(2))[0].finish_reason == "length"


def test_one_prompt_that_cannot_run_keeps_the_whole_batch_from_starting(make_llm: MakeLLM) -> None:
    llm = make_llm()
    with pytest.raises(InvalidTokenError, match="512"):
        llm.generate([[5, 6], [512]], greedy(2))
    assert llm.stats()["lookup_requests"] == 0
    assert not llm.engine.has_unfinished_requests


@pytest.mark.parametrize("prompt", [[], [-1], [2**63], [1.5], [True], [None], ["5"]])
def test_a_prompt_that_is_not_token_ids_is_refused(make_llm: MakeLLM, prompt: list[object]) -> None:
    with pytest.raises(RequestError):
        make_llm().engine.add_request(prompt, greedy(1))  # type: ignore[arg-type]


def test_a_reset_is_refused_while_a_request_runs(make_llm: MakeLLM) -> None:
    llm = make_llm()
    request_id = llm.engine.add_request(list(range(5, 45)), greedy(4))
    llm.engine.step()
    with pytest.raises(CacheBusyError, match="not finished"):
        llm.reset_prefix_cache()
    llm.engine.abort(request_id)
    assert llm.reset_prefix_cache() == 2
    assert llm.stats()["pages_free"] == llm.stats()["pages_total"]


def test_warming_up_leaves_no_page_and_no_count(make_llm: MakeLLM) -> None:
    llm = make_llm()
    before = llm.stats()
    llm.engine.warm_up()
    assert llm.stats() == before
    assert not any(value for name, value in before.items() if name not in ("pages_total", "pages_free"))


def test_an_interrupted_batch_leaves_no_request_behind(make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm()
    step = llm.engine.step

    def interrupted() -> object:
        step()
        raise KeyboardInterrupt

    monkeypatch.setattr(llm.engine, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        llm.generate([list(range(5, 45))] * 3, greedy(4))
    assert not llm.engine.has_unfinished_requests


def test_a_model_loaded_in_one_thread_runs_in_another() -> None:
    loaded = load_model("tiny")
    texts: list[str] = []

    def run() -> None:
        with LLM(loaded, EngineConfig(num_pages=16)) as llm:
            texts.append(llm.generate(["a page holds"], greedy(8))[0].text)

    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(texts) == 2 and texts[0] == texts[1]


def test_a_learners_component_runs_the_real_engine_and_a_missing_method_is_named(
    make_llm: MakeLLM, tiny_oracle: Oracle
) -> None:
    class Counting(ChainedPrefixIndex):
        lookups = 0

        def lookup(self, token_ids: object, max_pages: int, salt: str | None) -> list[int]:
            self.lookups += 1
            return super().lookup(token_ids, max_pages, salt)  # type: ignore[arg-type]

    index = Counting(16)
    llm = make_llm(components={"prefix_index": index})
    for _ in range(2):
        output = llm.generate([list(range(5, 45))], greedy(4))[0]
        tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)
    assert index.lookups >= 2 and output.metrics.cached_tokens == 32
    with pytest.raises(ConfigError, match=r"lacks .*lookup"):
        make_llm(components={"prefix_index": object()})
    with pytest.raises(ConfigError, match="not one of"):
        make_llm(components={"index": index})


def test_the_timeline_of_a_request_adds_up(make_llm: MakeLLM) -> None:
    llm = make_llm(max_batched_tokens=16)
    metrics = llm.generate([list(range(5, 45))], greedy(4))[0].metrics
    assert [event.name for event in metrics.events] == [
        "queued", "admitted", "prefill", "prefill", "prefill", "first_token", "ended:length",
    ]  # fmt: skip
    assert metrics.cached_tokens + metrics.computed_tokens == metrics.prompt_tokens == 40
    times = [metrics.queue_s, metrics.ttft_s, metrics.e2e_s]
    assert all(value is not None for value in times) and times == sorted(times)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("components", "told"),
    [
        ({"page_pool": RefCountedPagePool(4)}, r"num_pages=4, the engine 64"),
        ({"prefix_index": ChainedPrefixIndex(4)}, r"page_size=4, the engine 16"),
    ],
)
def test_a_component_of_another_size_is_refused_when_the_engine_is_built(
    make_llm: MakeLLM, components: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        make_llm(components=components)


def test_a_salt_that_is_not_a_string_is_refused_before_it_can_stop_the_engine(make_llm: MakeLLM) -> None:
    llm = make_llm()
    with pytest.raises(RequestError, match="cache_salt=5"):
        llm.engine.add_request([5, 6], greedy(1), cache_salt=5)  # type: ignore[arg-type]
    assert llm.engine.step() == []


def test_a_pool_larger_than_the_machine_is_refused_before_it_is_allocated(make_llm: MakeLLM) -> None:
    with pytest.raises(ConfigError, match=r"num_pages=1000000000000 .* GiB: give fewer pages"):
        make_llm(num_pages=10**12)


def test_arrays_of_token_ids_are_prompts_too(make_llm: MakeLLM) -> None:
    llm = make_llm()
    expected = llm.generate([[5, 6, 7]], greedy(2))[0].token_ids
    assert llm.generate([np.array([5, 6, 7])], greedy(2))[0].token_ids == expected
    assert llm.generate(np.array([[5, 6, 7]]), greedy(2))[0].token_ids == expected  # type: ignore[arg-type]
