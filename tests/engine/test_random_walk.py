"""Arrivals with shared prefixes, cancels and a pool that is too small, step by step against the oracle."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from minivllm import EngineConfig, SamplingParams
from minivllm.cache import audit
from minivllm.engine import Engine
from minivllm.models.loading import LoadedModel
from minivllm.request import RequestOutput
from tests.engine.oracle import Oracle

NUM_STEPS = 2000


class Walk:
    """A seeded walk. What it did is kept, so that a failure can be replayed from the seed and the step."""

    def __init__(self, engine: Engine, oracle: Oracle, seed: int) -> None:
        self.engine, self.oracle, self.random = engine, oracle, random.Random(seed)
        self.prefixes = [self._tokens(length) for length in (16, 24, 40, 64)]
        self.prompts: dict[str, list[int]] = {}
        self.seen: Counter[str] = Counter()

    def step(self) -> None:
        if len(self.prompts) < 5 and self.random.random() < 0.35:
            self._arrive()
        if self.prompts and self.random.random() < 0.04:
            self._cancel(self.random.choice(list(self.prompts)))
        if not self.prompts and self.random.random() < 0.2:
            self.engine.reset_prefix_cache()
        for output in self.engine.step():
            self._check(output)
        audit.check(self.engine)

    def finish(self) -> None:
        while self.engine.has_unfinished_requests:
            for output in self.engine.step():
                self._check(output)
            audit.check(self.engine)

    def _arrive(self) -> None:
        prefix = self.random.choice(self.prefixes)
        prompt = prefix[: self.random.randint(1, len(prefix))] + self._tokens(self.random.randint(0, 20))
        params = SamplingParams(max_tokens=self.random.randint(1, 24), temperature=0.0, ignore_eos=True)
        salt = self.random.choice([None, None, None, "tenant"])
        self.prompts[self.engine.add_request(prompt, params, cache_salt=salt)] = prompt
        self.seen["arrivals"] += 1

    def _cancel(self, request_id: str) -> None:
        output = self.engine.abort(request_id)
        assert output is not None
        self._check(output)

    def _check(self, output: RequestOutput) -> None:
        if output.finish_reason is None:
            return
        assert output.error is None
        prompt = self.prompts.pop(output.request_id)
        self.oracle.assert_greedy(prompt, output.token_ids)
        self.seen[output.finish_reason] += 1
        self.seen["hits"] += output.metrics.cached_tokens > 0

    def _tokens(self, count: int) -> list[int]:
        return [self.random.randrange(5, 400) for _ in range(count)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("publication", "single_flight", "admission", "eviction", "page_size", "chunk_tokens"),
    [
        ("incremental", "off", "optimistic", "lru", 16, 24),
        ("on_schedule", "off", "reserve", "lru", 16, 64),
        ("incremental", "page", "reserve", "scan", 4, 7),
        ("on_finish", "page", "optimistic", "lru", 16, 24),
        ("after_prefill", "release_after_prefill", "reserve", "scan", 16, 64),
        ("on_schedule", "release_on_finish", "optimistic", "scan", 4, 16),
    ],
)
def test_a_random_walk_under_pressure_equals_the_oracle_and_passes_the_audit_at_every_step(
    tiny: LoadedModel,
    tiny_oracle: Oracle,
    publication: str,
    single_flight: str,
    admission: str,
    eviction: str,
    page_size: int,
    chunk_tokens: int,
) -> None:
    config = EngineConfig(
        num_pages=10 * 16 // page_size,
        page_size=page_size,
        publication=publication,
        single_flight=single_flight,
        admission=admission,
        eviction=eviction,
        max_batched_tokens=chunk_tokens,
        max_active_requests=4,
        debug_poison_pages=True,
    )
    engine = Engine(tiny, config)
    walk = Walk(engine, tiny_oracle, seed=20 + page_size)
    for _ in range(NUM_STEPS):
        walk.step()
    walk.finish()
    stats = engine.stats()
    assert stats["pages_active"] == stats["pages_partial"]
    assert stats["evicted_tokens"] > 0, "the walk was meant to press on the pool"
    assert (stats["preemptions"] > 0) == (admission == "optimistic")
    assert min(walk.seen[what] for what in ("arrivals", "length", "abort", "hits")) > 10, walk.seen
