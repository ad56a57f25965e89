"""Sequences of tokens, words or characters: how far two of them go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def shared_length(first: Sequence[Any], second: Sequence[Any]) -> int:
    """How many leading items are equal. By halving, since comparing slices is fast and a loop over a book is not."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
