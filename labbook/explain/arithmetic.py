"""Tokens and pages: how much two prompts share, what is lost behind their first difference, what an order would win."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

# Shorter runs of equal tokens are chance, or the template between two messages, and no text that could be moved.
MIN_RUN_TOKENS = 8
_NEAR_PLACES = 16


@dataclass(frozen=True)
class Run:
    """`length` equal tokens, at `a` in one prompt and at `b` in the other."""

    a: int
    b: int
    length: int


def reusable(shared_tokens: int, prompt_tokens: int, page_tokens: int) -> int:
    """Tokens of whole shared pages; the last token of a prompt is always computed (cached tokens, design)."""
    return max(0, min(shared_tokens, prompt_tokens - 1)) // page_tokens * page_tokens


def equal_runs(a: Sequence[Hashable], b: Sequence[Hashable], start: int) -> list[Run]:
    """Runs of at least `MIN_RUN_TOKENS` tokens that stand in both prompts from `start` on, whatever their order.

    Each token counts once. Linear in the length of the prompts: an index of all short runs of `a`, walked along `b`.
    """
    places: defaultdict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for place in range(start, len(a) - MIN_RUN_TOKENS + 1):
        places[tuple(a[place : place + MIN_RUN_TOKENS])].append(place)
    taken: set[int] = set()
    runs: list[Run] = []
    at, expected = start, start
    while at <= len(b) - MIN_RUN_TOKENS:
        candidates = places.get(tuple(b[at : at + MIN_RUN_TOKENS]), [])
        # Where a text repeats itself, only places near the end of the last run are tried.
        middle = bisect_left(candidates, expected)
        near = candidates[max(0, middle - _NEAR_PLACES) : middle + _NEAR_PLACES]
        run = max((_extended(a, b, place, at, taken) for place in near), key=lambda one: one.length, default=None)
        if run is None or run.length < MIN_RUN_TOKENS:
            at += 1
            continue
        runs.append(run)
        taken.update(range(run.a, run.a + run.length))
        at, expected = at + run.length, run.a + run.length
    return runs


def _extended(a: Sequence[Hashable], b: Sequence[Hashable], place: int, at: int, taken: set[int]) -> Run:
    length = 0
    while (
        place + length < len(a)
        and at + length < len(b)
        and a[place + length] == b[at + length]
        and place + length not in taken
    ):
        length += 1
    return Run(place, at, length)
