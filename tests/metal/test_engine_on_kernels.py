"""An engine whose attention is the paged kernel, run by the runner: the same tokens as on the portable path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.attention.choice import RUNNER_VARIABLE
from minivllm.attention.metal import MetalAttention
from minivllm.attention.portable import PortableAttention
from minivllm.cache import audit
from minivllm.models.loading import LoadedModel, load_model

pytestmark = pytest.mark.usefixtures("compiler")

GREEDY = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)
DOCUMENT = list(range(5, 42))  # two whole pages and a tail


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny")


@pytest.fixture(params=[None, 8, 4], ids=["full precision", "8 bits", "4 bits"])
def engines(
    request: pytest.FixtureRequest, tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LLM, LLM]]:
    """On the kernel and on the portable path, with pages of each precision; free pages hold NaN."""
    monkeypatch.setenv(RUNNER_VARIABLE, "1")
    base = EngineConfig(
        num_pages=32, max_batched_tokens=24, debug_poison_pages=True, kv_bits=request.param, kv_group_size=32
    )
    made = [LLM(tiny, replace(base, attention=attention)) for attention in ("metal", "portable")]
    assert isinstance(made[0].engine.runner.attention, MetalAttention)
    assert isinstance(made[1].engine.runner.attention, PortableAttention)
    yield made[0], made[1]
    for llm in made:
        audit.check(llm.engine)
        llm.close()


def test_an_engine_on_the_kernel_writes_the_same_tokens(engines: tuple[LLM, LLM]) -> None:
    """Unequal lengths in one batch, prefill in chunks of at most 24 tokens, then the same again from restored pages."""
    prompts = [DOCUMENT, [*DOCUMENT[:32], 50, 51], list(range(60, 75)), [7]]
    for llm in engines:
        llm.generate(prompts[:1], GREEDY)
    kernel, portable = ([out.token_ids for out in llm.generate(prompts, GREEDY)] for llm in engines)
    assert kernel == portable
    cached = [[out.metrics.cached_tokens for out in llm.generate(prompts, GREEDY)] for llm in engines]
    assert cached[0] == cached[1] == [32, 32, 0, 0]


def test_logits_behind_a_restored_prefix_are_those_of_the_portable_path(engines: tuple[LLM, LLM]) -> None:
    for llm in engines:
        llm.generate([DOCUMENT], GREEDY)
    kernel, portable = (llm.logits([*DOCUMENT, 90, 91]) for llm in engines)
    assert kernel.shape == portable.shape == (7, 512)
    # A key in the middle between two steps of a quantized page may be rounded either way.
    assert np.abs(kernel - portable).max() < (0.1 if engines[0].engine.storage.is_quantized else 1e-4)
