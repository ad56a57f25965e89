"""How far two sequences agree."""

from __future__ import annotations

from collections.abc import Sequence

_STRIDE = 64


def common_length(left: Sequence[int], right: Sequence[int], page_units: int = 1) -> int:
    """How many leading units two sequences share, in whole pages of `page_units`."""
    end, length = min(len(left), len(right)), 0
    while length < end and left[length : length + _STRIDE] == right[length : length + _STRIDE]:
        length += _STRIDE  # compared in one go: an order of magnitude faster than one by one
    length = min(length, end)
    while length < end and left[length] == right[length]:
        length += 1
    return length - length % page_units
