"""The logits of the same tokens, computed in two ways: how far apart they are, and whether a choice changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LogitPair:
    """`first` and `second`: float32 [rows, vocabulary], a row for each token of the same sequence."""

    first: np.ndarray
    second: np.ndarray

    def __post_init__(self) -> None:
        if self.first.shape != self.second.shape or not len(self.first):
            raise ValueError(f"logits of shape {self.first.shape} and {self.second.shape} cannot be compared")

    @property
    def num_rows(self) -> int:
        return len(self.first)

    @property
    def largest_difference(self) -> float:
        return float(np.abs(self.first - self.second).max())

    @property
    def size(self) -> float:
        """The largest logit, to compare a difference with."""
        return float(np.abs(self.first).max())

    @property
    def flipped_rows(self) -> list[int]:
        """Rows in which another token is the likeliest."""
        return [int(row) for row in np.flatnonzero(self.first.argmax(axis=1) != self.second.argmax(axis=1))]

    @property
    def closest_race(self) -> float:
        """The smallest lead that a likeliest token has over the next one, in the first logits."""
        best = np.sort(np.partition(self.first, -2, axis=1)[:, -2:], axis=1)
        return float((best[:, 1] - best[:, 0]).min())

    @property
    def about_flips(self) -> str:
        """The first flipped token, or that there is none."""
        if not self.flipped_rows:
            return f"no token flipped: in all {self.num_rows} rows the likeliest token is the same"
        count = len(self.flipped_rows)
        return f"{count} of {self.num_rows} rows have another likeliest token, the first is row {self.flipped_rows[0]}"

    def as_dict(self) -> dict[str, Any]:
        """The fields for a record."""
        return {
            "rows": self.num_rows,
            "largest_difference": self.largest_difference,
            "largest_logit": self.size,
            "closest_race": self.closest_race,
            "flipped_rows": len(self.flipped_rows),
            "first_flipped_row": self.flipped_rows[0] if self.flipped_rows else None,
        }


def last_rows(cold: np.ndarray, warm: np.ndarray) -> LogitPair:
    """Warm logits beside those of the same tokens from a cold run: a warm run computes the last rows only."""
    return LogitPair(cold[len(cold) - len(warm) :], warm)
