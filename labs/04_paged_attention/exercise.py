"""Lab 04: attention over pages. The question is in README.md; `labs check 04` says how far you are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from minivllm.backend import mx


def slow_attention(query: list[float], keys: list[list[float]], values: list[list[float]]) -> list[float]:
    """What one query head gets from the tokens it may see, slowly."""
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [
        sum(weight * value[place] for weight, value in zip(weights, values, strict=True)) / sum(weights)
        for place in range(len(query))
    ]


def paged_attention(
    queries: mx.array, key_pages: mx.array, value_pages: mx.array, page_table: Sequence[int], num_tokens: int
) -> mx.array:
    """float32 [heads, head size]: what each query head gets from the first `num_tokens` tokens of the page table.

    `queries` is float32 [heads, head size]; the pages are [pages, page size, KV heads, head size].
    """
    raise NotImplementedError("paged_attention is not written yet")


class Piece(NamedTuple):
    """The softmax over some tokens: float32 [heads], [heads] and [heads, head size]."""

    highest: mx.array
    total: mx.array
    weighted: mx.array


def partial(queries: mx.array, keys: mx.array, values: mx.array) -> Piece:
    """The piece over these tokens, at least one: keys and values are float32 [tokens, KV heads, head size]."""
    raise NotImplementedError("partial is not written yet")


def merge(one: Piece, other: Piece) -> Piece:
    """The piece over the tokens of both. Either may be the piece over no tokens, (-inf, 0, 0)."""
    raise NotImplementedError("merge is not written yet")
