"""Attention over pages of two tokens, in pools whose other places hold NaN."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from labs.kit.exercises.drawing import labelled, pool
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from minivllm.backend import mx

HEAD_SIZE, PAGE_SIZE, NUM_PAGES = 4, 2, 4


def expected(queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Softmax attention in float64; queries [heads, size], keys and values [tokens, KV heads, size]."""
    per_kv_head = len(queries) // keys.shape[1]
    rows = []
    for head, query in enumerate(queries.astype(np.float64)):
        own = keys[:, head // per_kv_head].astype(np.float64)
        scores = own @ query / math.sqrt(len(query))
        weights = np.exp(scores - scores.max())
        rows.append(weights @ values[:, head // per_kv_head] / weights.sum())
    return np.array(rows)


def sequence(
    seed: int, num_tokens: int, heads: int = 4, kv_heads: int = 2, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    shape = (num_tokens, kv_heads, HEAD_SIZE)
    return tuple(random.normal(size=size).astype(np.float32) * scale for size in ((heads, HEAD_SIZE), shape, shape))  # type: ignore[return-value]


def in_pages(rows: np.ndarray, page_table: Sequence[int], fill: float) -> mx.array:
    """Rows [tokens, KV heads, size] in the places that the page table names; every other place holds `fill`."""
    pages = np.full((NUM_PAGES, PAGE_SIZE, *rows.shape[1:]), fill, dtype=np.float32)
    for token, row in enumerate(rows):
        pages[page_table[token // PAGE_SIZE], token % PAGE_SIZE] = row
    return mx.array(pages)


def require_close(actual: Any, right: np.ndarray, what: str, drawing: str = "") -> None:
    got = np.array(actual)
    if got.shape != right.shape:
        raise Wrong(f"{what}: another shape", expected=list(right.shape), actual=list(got.shape), drawing=drawing)
    if not np.allclose(got, right, rtol=1e-3, atol=1e-4):
        raise Wrong(what, expected=shown(right), actual=shown(got), drawing=drawing)


def shown(array: np.ndarray) -> str:
    return np.array2string(array.astype(np.float64), precision=3, suppress_small=True, max_line_width=90)


def attend(
    answer: Answer, page_table: Sequence[int], num_tokens: int, what: str, *, fill: float = 0.0, **shape: Any
) -> None:
    queries, keys, values = sequence(7, num_tokens, **shape)
    actual = answer.paged_attention(
        mx.array(queries),
        in_pages(keys, page_table, fill),
        in_pages(values, page_table, fill),
        list(page_table),
        num_tokens,
    )
    names = {
        page_table[number]: [f"t{n}" for n in range(number * 2, min(number * 2 + 2, num_tokens))]
        for number in range(-(-num_tokens // 2))
    }
    states = [" ".join(names.get(page_id, ["a stranger's"])) for page_id in range(NUM_PAGES)]
    drawing = labelled([("pool", pool(states)), ("page table", f"{list(page_table)}, {num_tokens} tokens")])
    require_close(actual, expected(queries, keys, values), what, drawing)


def attention_examples(answer: Answer) -> None:
    keys, values = (mx.array(pages).reshape(1, 2, 1, 1) for pages in ([0.0, math.log(3)], [10.0, 20.0]))
    require_close(
        answer.paged_attention(mx.array([[1.0]]), keys, values, [0], 2), np.array([[17.5]]), "the README's example"
    )


def scores_are_scaled(answer: Answer) -> None:
    attend(answer, [0, 1], 4, "scores are not divided by the square root of the head size", heads=1, kv_heads=1)


def pages_come_in_the_order_of_the_table(answer: Answer) -> None:
    for page_table in itertools.permutations(range(3)):
        attend(answer, page_table, 6, f"with the page table {list(page_table)}")


def strangers_are_not_seen(answer: Answer) -> None:
    for fill in (50.0, math.nan):
        attend(answer, [2], 2, "a page that is not in the table changes the answer", fill=fill)


def what_was_never_written_is_not_seen(answer: Answer) -> None:
    for fill in (50.0, math.nan):
        attend(answer, [2, 3, 1], 5, "the last page holds one token, and its other place changes the answer", fill=fill)


def a_table_may_be_longer_than_needed(answer: Answer) -> None:
    queries, keys, values = sequence(3, 3)
    actual = answer.paged_attention(
        mx.array(queries), in_pages(keys, [1, 0], math.nan), in_pages(values, [1, 0], math.nan), [1, 0, 3], 3
    )
    require_close(actual, expected(queries, keys, values), "page 3 is reserved for later, and changes the answer now")


def heads_share_kv_heads(answer: Answer) -> None:
    for heads, kv_heads in ((4, 1), (6, 2), (6, 3), (3, 3)):
        attend(answer, [0, 2, 1], 5, f"{heads} query heads on {kv_heads} KV heads", heads=heads, kv_heads=kv_heads)


def large_scores_do_not_overflow(answer: Answer) -> None:
    attend(answer, [0, 1], 4, "large scores", scale=40.0)


def fold(
    answer: Answer, seed: int, sizes: Sequence[int], scale: float = 1.0, heads: int = 4, kv_heads: int = 2
) -> tuple[Any, np.ndarray]:
    """Partial over groups of tokens, merged from the left; the answer that it gives, and the right one."""
    queries, keys, values = sequence(seed, sum(sizes), heads, kv_heads, scale)
    piece, start = None, 0
    for size in sizes:
        part = answer.partial(
            mx.array(queries), mx.array(keys[start : start + size]), mx.array(values[start : start + size])
        )
        piece = part if piece is None else answer.merge(piece, part)
        start += size
    _, total, weighted = piece  # type: ignore[misc]
    return weighted / mx.array(total)[:, None], expected(queries, keys, values)


def one_piece_is_attention(answer: Answer) -> None:
    for heads, kv_heads in ((1, 1), (4, 2)):
        require_close(
            *fold(answer, 1, [5], heads=heads, kv_heads=kv_heads),
            f"one piece over 5 tokens, {heads} query heads, {kv_heads} KV heads",
        )


def a_piece_has_its_three_parts(answer: Answer) -> None:
    queries, keys, values = sequence(2, 3, 1, 1)
    highest, total, _ = answer.partial(mx.array(queries), mx.array(keys), mx.array(values))
    scores = keys[:, 0] @ queries[0] / math.sqrt(HEAD_SIZE)
    require_close(highest, np.array([scores.max()]), "highest is the highest score of each head")
    require_close(total, np.array([np.exp(scores - scores.max()).sum()]), "total is the sum of exp(score - highest)")


def pieces_merge(answer: Answer) -> None:
    for seed in range(20):
        for sizes in ([2, 2], [1, 3, 2], [1, 1, 1, 1]):
            require_close(*fold(answer, seed, sizes), f"pieces of {sizes} tokens, merged")


def the_highest_score_may_come_first_or_last(answer: Answer) -> None:
    for seed in range(20):
        require_close(*fold(answer, seed, [1, 2, 1], scale=6.0), "pieces whose highest scores are far apart, merged")


def nothing_merges_with_anything(answer: Answer) -> None:
    queries, keys, values = (mx.array(array) for array in sequence(4, 2))
    piece = answer.partial(queries, keys, values)
    nothing = type(piece)(mx.full((4,), -math.inf), mx.zeros((4,)), mx.zeros((4, HEAD_SIZE)))
    for one, other, what in ((nothing, piece, "nothing and a piece"), (piece, nothing, "a piece and nothing")):
        _, total, weighted = answer.merge(one, other)
        require_close(weighted / total[:, None], np.array(piece[2] / piece[1][:, None]), f"{what}, merged")
    _, total, weighted = answer.merge(nothing, nothing)
    require_close(total, np.zeros(4), "nothing and nothing, merged: its total")
    require_close(weighted, np.zeros((4, HEAD_SIZE)), "nothing and nothing, merged: its weighted sum")


def merging_large_scores_does_not_overflow(answer: Answer) -> None:
    require_close(*fold(answer, 5, [2, 2], scale=40.0), "pieces with large scores, merged")


PARTS = (
    Part(
        ("paged_attention",),
        (
            Check(
                "the README's example",
                attention_examples,
                "Softmax over the tokens, then the weighted sum of the values.",
            ),
            Check("scores are scaled", scores_are_scaled, "Divide the scores by the square root of the head size."),
            Check(
                "pages come in the order of the table",
                pages_come_in_the_order_of_the_table,
                "Keys and values must be gathered in the same order, or pages by the number in the table.",
            ),
            Check(
                "strangers are not seen",
                strangers_are_not_seen,
                "The whole pool was attended to, with or without a mask: 0 times NaN is NaN.",
            ),
            Check(
                "what was never written is not seen",
                what_was_never_written_is_not_seen,
                "The last page was used as a whole: keep the first num_tokens tokens only.",
            ),
            Check(
                "a table may be longer than needed",
                a_table_may_be_longer_than_needed,
                "Pages are reserved before they are used: how many are used follows from num_tokens.",
            ),
            Check(
                "heads share KV heads",
                heads_share_kv_heads,
                "Query head h reads KV head h // (heads / KV heads): neighbours share, not every n-th.",
            ),
            Check(
                "large scores do not overflow", large_scores_do_not_overflow, "Subtract the highest score before exp."
            ),
        ),
        "Sharing a page between two sequences costs attention nothing: it only ever reads through a table.",
    ),
    Part(
        ("partial", "merge"),
        (
            Check(
                "one piece is attention",
                one_piece_is_attention,
                "weighted / total over one piece must be attention over its tokens.",
            ),
            Check(
                "a piece has its three parts",
                a_piece_has_its_three_parts,
                "highest, total and weighted all belong to the same highest score.",
            ),
            Check(
                "pieces merge",
                pieces_merge,
                "Both totals and both weighted sums must be brought to the common highest score before they are added.",
            ),
            Check(
                "the highest score may come first or last",
                the_highest_score_may_come_first_or_last,
                "Only one of the two pieces was shrunk, or always the same one.",
            ),
            Check(
                "nothing merges with anything",
                nothing_merges_with_anything,
                "exp(-inf - -inf) is NaN: a piece with total 0 has weight 0.",
            ),
            Check(
                "merging large scores does not overflow",
                merging_large_scores_does_not_overflow,
                "exp of a positive difference: shrink to the higher of the two.",
            ),
        ),
        "A kernel keeps these three numbers, however long the context is (Milakov and Gimelshein, 2018).",
    ),
)
