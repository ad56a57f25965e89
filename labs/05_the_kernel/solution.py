"""Lab 05, a solution: an online softmax over the tokens of one SIMD group, and a merge behind a barrier."""

from __future__ import annotations

import math


def slow_step(
    query: list[float], key: list[float], value: list[float], state: tuple[float, float, list[float]]
) -> tuple[float, float, list[float]]:
    """What one token does to (highest, total, sum), slowly, with all 64 numbers in one place. The query is scaled."""
    highest, total, weighted = state
    score = sum(q * k for q, k in zip(query, key, strict=True))
    new_highest = max(highest, score)
    shrink, weight = math.exp(highest - new_highest), math.exp(score - new_highest)
    return new_highest, total * shrink + weight, [s * shrink + weight * v for s, v in zip(weighted, value, strict=True)]


def inner_loop() -> str:
    """Metal: the body of the loop over `token`. Brings `highest`, `total`, `sum[0]` and `sum[1]` up to date."""
    return """
    const int slot = page_table[token / PAGE_SIZE] * PAGE_SIZE + token % PAGE_SIZE;
    const int at = (slot * KV_HEADS + kv_head) * 64 + lane;
    const float score = simd_sum(q[0] * keys[at] + q[1] * keys[at + 32]);
    const float new_highest = max(highest, score);
    const float shrink = exp(highest - new_highest);
    const float weight = exp(score - new_highest);
    highest = new_highest;
    total = total * shrink + weight;
    for (int i = 0; i < 2; ++i) {
        sum[i] = sum[i] * shrink + weight * values[at + 32 * i];
    }
"""


def merge_groups() -> str:
    """Metal: gives `answer[0]` and `answer[1]` their values, from what all SIMD groups have in threadgroup memory."""
    return """
threadgroup_barrier(mem_flags::mem_threadgroup);
float highest_of_all = -INFINITY;
for (int other = 0; other < GROUPS; ++other) {
    highest_of_all = max(highest_of_all, highest_of[other]);
}
float total_of_all = 0;
answer[0] = answer[1] = 0;
for (int other = 0; other < GROUPS; ++other) {
    const float share = total_of[other] == 0 ? 0 : exp(highest_of[other] - highest_of_all);
    total_of_all += share * total_of[other];
    for (int i = 0; i < 2; ++i) {
        answer[i] += share * sum_of[other * 64 + lane + 32 * i];
    }
}
answer[0] /= total_of_all;
answer[1] /= total_of_all;
"""
