"""What a loop costs in computed prompt tokens when every prompt goes on where the one before ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Any

from labbook.explain.arithmetic import reusable

PAGE_TOKENS = 16


def computed_with_cache(prompt_tokens: Sequence[int], page_tokens: int = PAGE_TOKENS) -> list[int]:
    """Tokens that each step computes: the first all, every other what lies behind the whole pages of the one before.

    Without a cache a step computes its whole prompt, so that list is `prompt_tokens` itself. A slot would save the
    partial page, too: the engine does exactly this with `num_slots=0`.
    """
    later = (length - reusable(before, length, page_tokens) for before, length in pairwise(prompt_tokens))
    return [*prompt_tokens[:1], *later]


@dataclass(frozen=True)
class AgentCost:
    """The formula, for `num_steps` steps: the first sends `system_tokens`, each further one `step_tokens` more."""

    num_steps: int = 40
    system_tokens: int = 1200
    step_tokens: int = 300
    tokens_per_s: int = 400
    page_tokens: int = PAGE_TOKENS

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"{name} is {value}: at least 1 is needed")

    @property
    def prompt_tokens(self) -> list[int]:
        """The length of each step's prompt."""
        return [self.system_tokens + step * self.step_tokens for step in range(self.num_steps)]

    @property
    def without_cache(self) -> int:
        """n s + t n (n - 1) / 2: it grows with the square of the steps."""
        return sum(self.prompt_tokens)

    @property
    def with_cache(self) -> int:
        """About s + t (n - 1), and up to a page more for each step: it grows in a line."""
        return sum(computed_with_cache(self.prompt_tokens, self.page_tokens))

    @property
    def ratio(self) -> float:
        return self.with_cache / self.without_cache

    def as_text(self) -> str:
        minutes = [tokens / self.tokens_per_s / 60 for tokens in (self.without_cache, self.with_cache)]
        return (
            f"{self.num_steps} steps, {self.system_tokens:,} tokens at first and {self.step_tokens:,} more with each: "
            f"{self.without_cache:,} tokens are computed without a cache and {self.with_cache:,} with it, "
            f"{1 / self.ratio:.1f} times fewer.\nAt {self.tokens_per_s:,} tokens a second of prefill "
            f"{minutes[0]:.1f} minutes become {minutes[1]:.1f}."
        )

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "without_cache_tokens": self.without_cache, "with_cache_tokens": self.with_cache}


def shape_sentence(without: Sequence[int], with_cache: Sequence[int], page_tokens: int = PAGE_TOKENS) -> str:
    """Whether two lists of computed tokens, one number for each step, have the shape that the field reports."""
    steps = [after - before for before, after in pairwise(without)]
    longest_step = max(steps)
    is_square = min(steps) > 0
    is_line = max(with_cache[1:]) < longest_step + page_tokens
    half = len(without) // 2
    growth = [list(accumulate(one))[2 * half - 1] / list(accumulate(one))[half - 1] for one in (without, with_cache)]
    found = (
        f"Without the cache the first step computed {without[0]} tokens and the last {without[-1]}. "
        f"With it no step after the first computed more than {max(with_cache[1:])}. "
        f"From {half} to {2 * half} steps the sum grew {growth[0]:.1f} times without the cache "
        f"and {growth[1]:.1f} times with it."
    )
    if is_square and is_line:
        return f"{found} This is the shape that the field reports: a square without the cache, a line with it."
    broken = [
        name for name, holds in (("a square without the cache", is_square), ("a line with it", is_line)) if not holds
    ]
    return f"{found} The field reports another shape: here it is not {' and not '.join(broken)}."
