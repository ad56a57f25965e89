"""Lab 04, a solution: gather what may be seen, then attend; and the same in pieces."""

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
    keys, values = (gathered(pages, page_table, num_tokens) for pages in (key_pages, value_pages))
    piece = partial(queries, keys, values)
    return piece.weighted / piece.total[:, None]


def gathered(pages: mx.array, page_table: Sequence[int], num_tokens: int) -> mx.array:
    """[tokens, KV heads, head size]: the pages of the table in its order, without what was never written."""
    page_size = pages.shape[1]
    used = pages[mx.array(list(page_table[: -(-num_tokens // page_size)]))]
    return used.reshape(-1, *pages.shape[2:])[:num_tokens]


class Piece(NamedTuple):
    """The softmax over some tokens: float32 [heads], [heads] and [heads, head size]."""

    highest: mx.array
    total: mx.array
    weighted: mx.array


def partial(queries: mx.array, keys: mx.array, values: mx.array) -> Piece:
    """The piece over these tokens, at least one: keys and values are float32 [tokens, KV heads, head size]."""
    heads, head_size = queries.shape
    queries_per_kv_head = heads // keys.shape[1]
    keys, values = (mx.repeat(array, queries_per_kv_head, axis=1) for array in (keys, values))
    scores = (keys * queries[None]).sum(axis=-1) / math.sqrt(head_size)  # [tokens, heads]
    highest = scores.max(axis=0)
    weights = mx.exp(scores - highest)
    return Piece(highest, weights.sum(axis=0), (weights[..., None] * values).sum(axis=0))


def merge(one: Piece, other: Piece) -> Piece:
    """The piece over the tokens of both. Either may be the piece over no tokens, (-inf, 0, 0)."""
    highest = mx.maximum(one.highest, other.highest)
    shrink = [mx.where(piece.total == 0, 0.0, mx.exp(piece.highest - highest)) for piece in (one, other)]
    total = one.total * shrink[0] + other.total * shrink[1]
    weighted = one.weighted * shrink[0][:, None] + other.weighted * shrink[1][:, None]
    return Piece(highest, total, weighted)
