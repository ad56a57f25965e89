"""Many bodies in the order in which they were sent: each against the best match among those before it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labbook.explain.body import Body, as_body
from labbook.explain.explanation import Explanation
from labbook.explain.pair import PAGE_TOKENS, as_renderer, explain_rendered
from labbook.explain.rendered import Rendered
from labbook.sequences import shared_length

_KEPT_BODIES = 1000


@dataclass(frozen=True)
class Entry:
    """One body of a series, numbered from 1. `against` is the number of its best match, None for the first.

    `is_new` is true where nothing of a page is equal to any prompt before: such a prompt has no divergence to explain.
    """

    number: int
    against: int | None
    explanation: Explanation | None
    is_new: bool

    @property
    def cause(self) -> str | None:
        return None if self.is_new or self.explanation is None else self.explanation.cause


@dataclass(frozen=True)
class Summary:
    """How often each cause came, and how many equal tokens were lost behind it."""

    cause: str
    count: int
    lost_tokens: int


class Series:
    """Takes bodies one by one; remembers the last `kept` of them."""

    def __init__(self, tokenizer: Any = None, page_tokens: int = PAGE_TOKENS, kept: int = _KEPT_BODIES) -> None:
        self._renderer = as_renderer(tokenizer)
        self._page_tokens = page_tokens
        self._before: deque[tuple[int, Rendered]] = deque(maxlen=kept)
        self._count = 0

    def add(self, body: Mapping[str, Any] | Body) -> Entry:
        """Explain `body` against the earlier prompt with the longest shared prefix, the newest of several."""
        self._count += 1
        rendered = self._renderer.render(as_body(body, f"body {self._count}"))
        comparable = [(number, earlier) for number, earlier in self._before if earlier.unit == rendered.unit]
        self._before.append((self._count, rendered))
        if not comparable:
            return Entry(self._count, None, None, is_new=True)
        number, best = max(comparable, key=lambda one: (shared_length(one[1].tokens, rendered.tokens), one[0]))
        explained = explain_rendered(best, rendered, self._page_tokens)
        equal_tokens = max(explained.shared_tokens, explained.lost_tokens)
        is_new = explained.cause == "unknown" and equal_tokens < self._page_tokens
        return Entry(self._count, number, explained, is_new)


def summarize(entries: Iterable[Entry]) -> list[Summary]:
    """One row per cause, the dearest first."""
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for entry in entries:
        if entry.cause is not None and entry.explanation is not None:
            counts[entry.cause] += 1
            lost[entry.cause] += entry.explanation.lost_tokens
    rows = [Summary(cause, count, lost[cause]) for cause, count in counts.items()]
    return sorted(rows, key=lambda row: (-row.lost_tokens, -row.count, row.cause))
