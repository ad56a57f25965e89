"""The learner's Metal in the frame of the lab, run with bounds and races watched, on pages full of NaN."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labs.kit.exercises.part import Answer, Check, Part, Wrong
from minivllm.backend import mx

FRAME = Path(__file__).with_name("kernel.metal").read_text(encoding="utf-8")
HEAD_SIZE, PAGE_SIZE, NUM_PAGES, GROUPS, LANES = 64, 2, 6, 4, 32
RIGHT_INNER_LOOP = """
    int slot_ = page_table[token / PAGE_SIZE] * PAGE_SIZE + token % PAGE_SIZE;
    int at_ = (slot_ * KV_HEADS + kv_head) * 64 + lane;
    float s_ = simd_sum(q[0] * keys[at_] + q[1] * keys[at_ + 32]), h_ = max(highest, s_);
    float k_ = exp(highest - h_), w_ = exp(s_ - h_);
    highest = h_; total = total * k_ + w_;
    sum[0] = sum[0] * k_ + w_ * values[at_]; sum[1] = sum[1] * k_ + w_ * values[at_ + 32];
"""
RIGHT_MERGE = """
threadgroup_barrier(mem_flags::mem_threadgroup);
float h_ = max(max(highest_of[0], highest_of[1]), max(highest_of[2], highest_of[3])), t_ = 0;
answer[0] = answer[1] = 0;
for (int o_ = 0; o_ < GROUPS; ++o_) {
    float s_ = total_of[o_] == 0 ? 0 : exp(highest_of[o_] - h_);
    t_ += s_ * total_of[o_];
    answer[0] += s_ * sum_of[o_ * 64 + lane]; answer[1] += s_ * sum_of[o_ * 64 + lane + 32];
}
answer[0] /= t_; answer[1] /= t_;
"""


def text_of(answer: Answer, name: str) -> str:
    text = getattr(answer, name)()
    if not isinstance(text, str):
        raise Wrong(f"{name} returns no text", expected="a string of Metal", actual=type(text).__name__)
    return text


def source(inner_loop: str, merge_groups: str) -> str:
    return FRAME.replace("//// inner_loop", inner_loop.strip("\n")).replace(
        "//// merge_groups", merge_groups.strip("\n")
    )


def run(
    inner: str,
    merge: str,
    arrays: Sequence[mx.array],
    heads: int,
    kv_heads: int,
    make: Callable[..., Any] | None = None,
) -> np.ndarray:
    """The kernel's answer, [heads, 64]. What the runner reports is the learner's to read: `Wrong`."""
    from minivllm.metal.errors import CompilerMissing, KernelCompileError, KernelFault
    from minivllm.metal.runner import metal_kernel

    text = source(inner, merge)
    kernel = (make or metal_kernel)(
        name=f"lab05_{hashlib.sha256(text.encode()).hexdigest()[:16]}_{heads}_{kv_heads}",
        input_names=["queries", "keys", "values", "page_table", "num_tokens"],
        output_names=["out"],
        source=text,
    )
    constants = {"HEADS": heads, "KV_HEADS": kv_heads, "PAGE_SIZE": PAGE_SIZE, "GROUPS": GROUPS}
    try:
        (out,) = kernel(
            inputs=list(arrays),
            template=list(constants.items()),
            grid=(heads * LANES * GROUPS, 1, 1),
            threadgroup=(LANES * GROUPS, 1, 1),
            output_shapes=[(heads, HEAD_SIZE)],
            output_dtypes=[mx.float32],
        )
    except CompilerMissing:
        raise
    except KernelCompileError as error:
        raise Wrong(
            "the text does not compile",
            drawing=first_lines(error),
            expected="a kernel",
            actual="what the compiler says above",
        ) from None
    except KernelFault as error:
        raise Wrong(
            f"the kernel did what no thread may do: {error.kind}",
            drawing=first_lines(error),
            expected="no report",
            actual=error.kind,
        ) from None
    return np.array(out)


def first_lines(error: Exception) -> str:
    return "\n".join(str(error).splitlines()[:8])


def attend(
    answer: Answer,
    part: str,
    page_table: Sequence[int],
    num_tokens: int,
    what: str,
    heads: int = 2,
    kv_heads: int = 1,
    scale: float = 1.0,
) -> None:
    """Run with the learner's text in one place and ours in the other, and compare with softmax attention."""
    inner = text_of(answer, "inner_loop") if part == "inner_loop" else RIGHT_INNER_LOOP
    merge = text_of(answer, "merge_groups") if part == "merge_groups" else RIGHT_MERGE
    random = np.random.default_rng(num_tokens)
    queries = random.normal(size=(heads, HEAD_SIZE)).astype(np.float32) * scale
    keys, values = (random.normal(size=(num_tokens, kv_heads, HEAD_SIZE)).astype(np.float32) for _ in range(2))
    pages = [np.full((NUM_PAGES * PAGE_SIZE, kv_heads, HEAD_SIZE), np.nan, dtype=np.float32) for _ in range(2)]
    for token in range(num_tokens):
        slot = page_table[token // PAGE_SIZE] * PAGE_SIZE + token % PAGE_SIZE
        pages[0][slot], pages[1][slot] = keys[token], values[token]
    table = [*page_table, *[0] * (8 - len(page_table))]
    arrays = [
        mx.array(array)
        for array in (queries, *pages, np.array(table, dtype=np.int32), np.array([num_tokens], dtype=np.int32))
    ]
    require_close(
        run(inner, merge, arrays, heads, kv_heads), expected(queries, keys, values), what, page_table, num_tokens
    )
    if mx.metal.is_available():
        on_gpu = run(inner, merge, arrays, heads, kv_heads, mx.fast.metal_kernel)
        require_close(on_gpu, expected(queries, keys, values), f"on the GPU: {what}", page_table, num_tokens)


def expected(queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    rows = []
    for head, query in enumerate(queries.astype(np.float64)):
        kv_head = head // (len(queries) // keys.shape[1])
        scores = keys[:, kv_head].astype(np.float64) @ query / math.sqrt(HEAD_SIZE)
        weights = np.exp(scores - scores.max())
        rows.append(weights @ values[:, kv_head] / weights.sum())
    return np.array(rows)


def require_close(actual: np.ndarray, right: np.ndarray, what: str, page_table: Sequence[int], num_tokens: int) -> None:
    if not np.allclose(actual, right, rtol=1e-3, atol=1e-4):
        raise Wrong(
            what,
            drawing=f"page table {list(page_table)}, {num_tokens} tokens, pages of 2; first 6 numbers of head 0",
            expected=np.array2string(right[0, :6], precision=3),
            actual=np.array2string(actual[0, :6], precision=3),
        )


def one_token(answer: Answer, part: str) -> None:
    attend(answer, part, [0], 1, "one token: the answer is its value")


def in_loop(check: Callable[[Answer, str], None]) -> Callable[[Answer], None]:
    return lambda answer: check(answer, "inner_loop")


def in_merge(check: Callable[[Answer, str], None]) -> Callable[[Answer], None]:
    return lambda answer: check(answer, "merge_groups")


def all_lanes_count(answer: Answer, part: str) -> None:
    attend(answer, part, [0, 1, 2], 5, "five tokens in pages 0, 1, 2")


def pages_are_found_through_the_table(answer: Answer, part: str) -> None:
    for page_table in itertools.islice(itertools.permutations(range(4), 3), 6, 12):
        attend(answer, part, page_table, 6, f"with the page table {list(page_table)}")


def kv_heads_are_shared(answer: Answer, part: str) -> None:
    for heads, kv_heads in ((2, 2), (4, 2)):
        attend(answer, part, [3, 1], 4, f"{heads} query heads on {kv_heads} KV heads", heads, kv_heads)


def large_scores(answer: Answer, part: str) -> None:
    for num_tokens in (7, 8, 9):
        attend(answer, part, [5, 0, 3, 1, 2], num_tokens, "scores far apart", heads=4, scale=200.0)


def some_groups_have_nothing(answer: Answer, part: str) -> None:
    for num_tokens in (1, 2, 3):
        attend(answer, part, [4, 2], num_tokens, f"{num_tokens} tokens for 4 SIMD groups")


def every_number_of_tokens(answer: Answer, part: str) -> None:
    for num_tokens in range(4, 10):
        attend(answer, part, [4, 2, 0, 5, 1], num_tokens, f"{num_tokens} tokens")


def the_barrier_is_there(answer: Answer) -> None:
    """Races are reported while it runs; a barrier that comes too late may pass by luck, so the text is read, too."""
    text = re.sub(r"//.*", "", text_of(answer, "merge_groups"))
    barrier = text.find("threadgroup_barrier")
    reads = [place for name in ("highest_of[", "total_of[", "sum_of[") if (place := text.find(name)) >= 0]
    if barrier < 0 or (reads and min(reads) < barrier):
        raise Wrong(
            "threadgroup memory is read before the barrier",
            expected="threadgroup_barrier(mem_flags::mem_threadgroup) first",
            actual="no barrier" if barrier < 0 else "a read before it",
        )


PARTS = (
    Part(
        ("inner_loop",),
        (
            Check(
                "one token",
                in_loop(one_token),
                "The place of a lane's two numbers is not right, or sum is not brought up to date.",
            ),
            Check(
                "all lanes count",
                in_loop(all_lanes_count),
                "A score needs simd_sum over the products of all lanes, and sum and total must shrink together.",
            ),
            Check(
                "pages are found through the table",
                in_loop(pages_are_found_through_the_table),
                "The slot is page_table[token / PAGE_SIZE] * PAGE_SIZE + token % PAGE_SIZE.",
            ),
            Check(
                "KV heads are shared",
                in_loop(kv_heads_are_shared),
                "The place in keys and values needs KV_HEADS and kv_head.",
            ),
            Check(
                "large scores",
                in_loop(large_scores),
                "exp of something positive: weights and shrink factors are at most 1.",
            ),
        ),
        "Each SIMD group reads every key once and keeps four numbers a lane, however long the context is.",
    ),
    Part(
        ("merge_groups",),
        (
            Check(
                "one token for four groups",
                in_merge(one_token),
                "A group without a token weighs nothing: exp(-INFINITY - -INFINITY) is NaN.",
            ),
            Check(
                "some groups have nothing",
                in_merge(some_groups_have_nothing),
                "The share of a group whose total is 0 must be 0.",
            ),
            Check(
                "every number of tokens",
                in_merge(every_number_of_tokens),
                "Shares weigh totals and sums alike; the division comes at the end.",
            ),
            Check(
                "large scores, merged",
                in_merge(large_scores),
                "Shares are relative to the highest score of all groups.",
            ),
            Check(
                "the barrier is there",
                the_barrier_is_there,
                "Without it a group reads what another has not written yet: right by luck.",
            ),
        ),
        "The same merge puts together threadgroups, GPUs and machines: flash decoding and ring attention do it.",
    ),
)
