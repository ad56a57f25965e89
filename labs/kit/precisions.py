"""One engine for each number format of the KV cache, over the same weights, and what differs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labs.kit.table import text_table
from minivllm import LLM, EngineConfig, SamplingParams
from minivllm.evaluate import Quality
from minivllm.models.loading import load_model

FORMATS: Mapping[str, Mapping[str, Any]] = {
    "32 bits": {"kv_dtype": "float32"},
    "16 bits": {"kv_dtype": "float16"},
    "8 bits": {"kv_dtype": "float16", "kv_bits": 8},
    "4 bits": {"kv_dtype": "float16", "kv_bits": 4},
}
"""The dtype is named, so that they are the same on every device. Of quantized pages it is that of the scales."""


def open_precisions(model: str, num_pages: int) -> dict[str, LLM]:
    """The engines by the name of their format; close them. The model is loaded once, in about two seconds."""
    loaded = load_model(model)
    group = group_size_for(loaded.spec.head_dim)
    return {
        name: LLM(loaded, EngineConfig(num_pages=num_pages, kv_group_size=group, **settings))
        for name, settings in FORMATS.items()
    }


def group_size_for(head_dim: int) -> int:
    """64, the usual group, or 32 for smaller heads."""
    return 64 if head_dim % 64 == 0 else 32


def measured_bytes_per_token(llm: LLM) -> float:
    """The bytes of all arrays of the storage, over their rows: one a token, and one that pads."""
    num_rows = llm.engine.num_pages * llm.engine.page_size + 1
    return llm.engine.storage.num_bytes / num_rows


def cost_table(costs: Mapping[str, Quality]) -> str:
    """What each format costs against full precision: divergence in nats, agreement, perplexity in tokens."""
    columns = ("keys and values", "mean KL (nats)", "99th percentile", "same top token", "perplexity")
    rows = [
        (
            name,
            f"{cost.divergence.mean_kl_nats:.5f}",
            f"{cost.divergence.p99_kl_nats:.5f}",
            f"{cost.divergence.same_top_share:.1%}",
            f"{cost.perplexity.quantized:.2f}",
        )
        for name, cost in costs.items()
    ]
    return text_table(columns, rows)


def decode_ms(
    llms: Mapping[str, LLM], token_ids: Sequence[int], *, max_tokens: int = 6, repeats: int = 3
) -> dict[str, list[float]]:
    """Milliseconds of one decode step behind this prompt, averaged over each repeat.

    The engines take turns, so that a busy moment of the machine meets all of them. The prompt should be cached already.
    """
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
    taken: dict[str, list[float]] = {name: [] for name in llms}
    for _ in range(repeats):
        for name, llm in llms.items():
            (output,) = llm.generate([list(token_ids)], params)
            assert output.metrics.decode_s is not None
            taken[name].append(1000 * output.metrics.decode_s / (max_tokens - 1))
    return taken


def stored_keys(llm: LLM, token_ids: Sequence[int]) -> list[np.ndarray]:
    """The keys of each layer, float32 [tokens, heads, head size], of the whole pages that are cached of these tokens.

    Raises `ValueError` when none is.
    """
    engine = llm.engine
    pages = engine.manager.index.lookup(token_ids, len(token_ids) // engine.page_size, None)
    if not pages:
        raise ValueError(f"no page of these {len(token_ids)} tokens is cached: run them first")
    per_page = [engine.storage.page_arrays(page_id) for page_id in pages]
    return [np.concatenate([page[layer][0] for page in per_page]) for layer in range(engine.spec.num_layers)]


def rounding_error(values: np.ndarray, bits: int, group_size: int) -> float:
    """Root mean square of what rounding to `bits` changes, over that of the values. 0.01 is one percent.

    `values` [tokens, heads, head size]. Groups are consecutive numbers of one head, and may reach over several tokens:
    with a group of `head size` or less each token has scales of its own, as in the engine. Each group is rounded to
    2**bits evenly spaced numbers between its least and its largest.
    """
    by_head = np.ascontiguousarray(values.transpose(1, 0, 2), dtype=np.float64)
    groups = by_head.reshape(-1, group_size)
    low, high = groups.min(axis=1, keepdims=True), groups.max(axis=1, keepdims=True)
    step = np.maximum((high - low) / (2**bits - 1), np.finfo(np.float64).tiny)
    rounded = low + np.round((groups - low) / step) * step
    return float(np.sqrt(((rounded - groups) ** 2).mean() / (groups**2).mean()))
