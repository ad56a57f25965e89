"""Prompts that come round and round, against a pool that holds a given number of them."""

from __future__ import annotations

from collections.abc import Iterable

from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.models.loading import LoadedModel

PAGE_TOKENS = 16
PROMPT_PAGES = 2
PROMPT_TOKENS = PROMPT_PAGES * PAGE_TOKENS
"""What one prompt can restore. It is one token longer, because one token is always computed."""

_FIRST_ID = 100  # any vocabulary here has ids 100 to 499
_NUM_IDS = 400


def cycled_prompts(num_prompts: int) -> list[list[int]]:
    """Token ids of prompts that differ from the first token on: no page of one serves another."""
    assert num_prompts <= _NUM_IDS, f"{num_prompts} prompts would begin alike: {_NUM_IDS} are the most"
    return [
        [_FIRST_ID + (number + place) % _NUM_IDS for place in range(PROMPT_TOKENS + 1)] for number in range(num_prompts)
    ]


def pool_config(capacity: int, eviction: str) -> EngineConfig:
    """A pool in which `capacity` prompts stay cached, beside the page that a running one needs for its last token."""
    return EngineConfig(page_size=PAGE_TOKENS, num_pages=capacity * PROMPT_PAGES + 1, eviction=eviction, num_slots=0)


def cycle_twice(llm: LLM, num_prompts: int) -> int:
    """Send the prompts one after the other, and all of them again: tokens restored the second time."""
    prompts, one_token = cycled_prompts(num_prompts), SamplingParams(max_tokens=1, temperature=0.0)
    for _ in range(2):
        restored = sum(llm.generate([prompt], one_token)[0].metrics.cached_tokens for prompt in prompts)
    return restored


def sweep(loaded: LoadedModel, capacity: int, sizes: Iterable[int], eviction: str) -> list[tuple[float, int]]:
    """(working set / capacity, tokens restored in the second cycle) for each number of prompts."""
    points = []
    for num_prompts in sizes:
        with LLM(loaded, pool_config(capacity, eviction)) as llm:
            points.append((num_prompts / capacity, cycle_twice(llm, num_prompts)))
    return points
