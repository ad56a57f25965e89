"""What a server tells about a request, honestly or not. The truth comes from the engine; a lie is said, never done."""

from __future__ import annotations

from collections.abc import Sequence

from labs.kit.doubles.faults import Faults
from labs.kit.doubles.memory import longest_shared
from labs.kit.doubles.replying import Counts
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine
from minivllm.request import RequestMetrics


class Teller:
    """Turns a request's real counts into the told ones."""

    def __init__(self, faults: Faults, engine: TinyEngine, page_size: int) -> None:
        self._faults = faults
        self._engine = engine
        self._page_size = page_size
        self._prompts: list[Sequence[int]] = []

    def as_if_cached(self, prompt: Sequence[int]) -> int:
        """Tokens that a cache which never forgets would reuse: whole pages, never the whole prompt. Remembers it."""
        if "as_if_cached" not in (self._faults.counters, self._faults.usage):
            return 0
        usable = min(longest_shared(prompt, self._prompts), len(prompt) - 1)
        self._prompts.append(prompt)
        return usable // self._page_size * self._page_size

    def counts(self, metrics: RequestMetrics, as_if_cached: int) -> Counts:
        """What the answer itself says."""
        return Counts(
            prompt_tokens=metrics.prompt_tokens,
            completion_tokens=metrics.output_tokens,
            cached_tokens=_told(self._faults.usage, metrics.cached_tokens, as_if_cached),
            prompt_s=self._prompt_s(metrics),
            decode_s=metrics.decode_s or 0.0,
        )

    def count(self, tally: Tally, metrics: RequestMetrics, as_if_cached: int = 0) -> None:
        """A finished request on the metrics page. Without a cache nothing is queried, unless the page lies."""
        is_queried = self._engine.has_cache or self._faults.counters != "honest"
        tally.add(
            queried_tokens=metrics.prompt_tokens if is_queried else 0,
            hit_tokens=_told(self._faults.counters, metrics.cached_tokens, as_if_cached) or 0,
            prompt_tokens=metrics.prompt_tokens,
            generated_tokens=metrics.output_tokens,
            prompt_s=self._prompt_s(metrics),
            decode_s=metrics.decode_s or 0.0,
        )

    def _prompt_s(self, metrics: RequestMetrics) -> float:
        return (metrics.prefill_s or 0.0) + self._engine.delay_s(metrics.computed_tokens)


def _told(how: str, cached_tokens: int, as_if_cached: int) -> int | None:
    lies = {"as_if_cached": as_if_cached, "zero": 0, "no_details": None, "absent": None}
    return lies.get(how, cached_tokens)
