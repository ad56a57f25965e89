"""Engines small enough to draw, over one loaded model, and what their memory holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.cache.audit import view_pages
from minivllm.models.loading import LoadedModel

PAGE_TOKENS = 4
NUM_PAGES = 12


def small_llm(loaded: LoadedModel, components: Mapping[str, Any] | None = None, **settings: Any) -> LLM:
    """12 pages of 4 tokens unless told otherwise, every number in 4 bytes. `settings` are fields of EngineConfig.

    Pages that nobody uses are filled with NaN. There are no slots, so a page that is not full is free when its request
    ends.
    """
    small: dict[str, Any] = {"page_size": PAGE_TOKENS, "num_pages": NUM_PAGES, "num_slots": 0, "kv_dtype": "float32"}
    return LLM(loaded, EngineConfig(**{**small, "debug_poison_pages": True, **settings}), components)


def first_tokens(loaded: LoadedModel, text: str, count: int) -> list[int]:
    """The first tokens of a text: as many as asked for, whatever the tokenizer. ValueError when it has fewer."""
    token_ids = loaded.tokenizer.encode(text, add_special_tokens=False)
    if len(token_ids) < count:
        raise ValueError(f"{text!r:.60} has {len(token_ids)} tokens for this model, not {count}: give a longer text")
    return token_ids[:count]


def prefill_all(llm: LLM, prompts: Sequence[Sequence[int]], max_tokens: int = 16) -> None:
    """Let all prompts arrive at once, and step until each is computed. Their answers go on: nothing is released."""
    for prompt in prompts:
        llm.engine.add_request(prompt, SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True))
    while llm.stats()["requests_waiting"] or any(request.is_prefilling for request in llm.engine.requests):
        llm.engine.step()


def rows_held_and_written(llm: LLM) -> tuple[int, int]:
    """Rows of one layer's array in pages that somebody holds, and rows that hold a number.

    Of an engine of `small_llm` that has had no request before these: what is not written is NaN.
    """
    pages = view_pages(llm.engine.manager, llm.engine.requests)
    keys = np.array(llm.engine.storage.keys[0])[:-1]  # without the row for padding
    held = sum(page.state == "active" for page in pages) * llm.engine.page_size
    return held, int((~np.isnan(keys).any(axis=(1, 2))).sum())
