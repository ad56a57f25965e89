"""Two prompts token by token: what they share, where they part, and which pages a cache can restore.

    pair = compare(first_body, second_body, tokenizer)
    print(pair.as_text())

A page is restored when all its tokens are shared and at least one token of the prompt is left to compute.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from labbook.explain import PAGE_TOKENS, Explanation, explain_rendered
from labbook.explain.advice import name as cause_name
from labbook.explain.body import as_body
from labbook.explain.divergence import diverge
from labbook.explain.pair import as_renderer
from labbook.explain.rendered import Rendered

Mark = Literal["shared", "parting", "lost", "other"]

SIGNS: dict[Mark, str] = {"shared": "=", "parting": "#", "lost": "-", "other": "."}
MEANINGS: dict[Mark, str] = {
    "shared": "shared from the start",
    "parting": "here they part",
    "lost": "equal again, but lost",
    "other": "different",
}
_PAGES_IN_A_ROW = 4
_VISIBLE = {" ": "·", "\n": "⏎", "\r": "␍", "\t": "⇥"}


@dataclass(frozen=True)
class Chip:
    """One token. `text` shows what cannot be seen: a blank as a dot, a line break as an arrow."""

    text: str
    mark: Mark


@dataclass(frozen=True)
class PromptPair:
    """`first` was sent before `second`. Their tokens are marked; everything else comes from the explanation."""

    title: str
    first: tuple[Chip, ...]
    second: tuple[Chip, ...]
    explanation: Explanation

    @property
    def page_tokens(self) -> int:
        return self.explanation.page_tokens

    @property
    def num_pages(self) -> int:
        """Of the longer prompt, a last page that is not full included."""
        return _pages(max(len(self.first), len(self.second)), self.page_tokens)

    @property
    def num_restored_pages(self) -> int:
        return self.explanation.reusable_tokens // self.page_tokens

    def page(self, number: int) -> tuple[Sequence[Chip], Sequence[Chip]]:
        """The chips of one page on both sides; the last pages may be short, or empty on one side."""
        start, end = number * self.page_tokens, (number + 1) * self.page_tokens
        return self.first[start:end], self.second[start:end]

    @property
    def counts(self) -> dict[str, int]:
        """In tokens, for a record: what the second prompt has, shares, can restore, and loses."""
        told = self.explanation
        return {
            "prompt_tokens": told.prompt_tokens,
            "shared_tokens": told.shared_tokens,
            "restorable_tokens": told.reusable_tokens,
            "lost_tokens": told.lost_tokens if told.is_alarm else 0,
        }

    @property
    def verdict(self) -> str:
        """How much of the second prompt a cache of whole pages can restore."""
        told = self.explanation
        pages = f"{self.num_restored_pages} of {_pages(told.prompt_tokens, self.page_tokens)} pages"
        return f"{told.reusable_tokens} of {told.prompt_tokens} {told.unit}s can be restored, {pages}."

    @property
    def reason(self) -> str:
        """Where the two part, the likely cause, and what it costs."""
        told = self.explanation
        if told.position is None:
            return "The prompts are equal. The last token is computed all the same, and its page with it."
        texts = f"{shown(told.a.token_text)} against {shown(told.b.token_text)}"
        place = f"They part at {told.unit} {told.position}, {texts}"
        if not told.is_alarm:
            return f"{place}. Nothing wrong: {told.why}."
        seen = f" ({told.confidence})" if told.cause != "unknown" else ""
        lost = f"{told.lost_tokens} equal {told.unit}s behind it are lost"
        return f"{place}. Likely cause: {cause_name(told.cause)}{seen}. {lost}."

    def as_text(self) -> str:
        """The same as the picture of it: the sentences, then a map with one sign for each token."""
        legend = ", ".join(f"{SIGNS[mark]} {meaning}" for mark, meaning in MEANINGS.items())
        return "\n".join([f"{self.title}: {self.verdict}", self.reason, *self._map(), f"  {legend}; | page border"])

    def _map(self) -> list[str]:
        rows = []
        for start in range(0, self.num_pages, _PAGES_IN_A_ROW):
            numbers = range(start, min(start + _PAGES_IN_A_ROW, self.num_pages))
            head = f"pages {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"page {numbers[0]}"
            for side, name in enumerate(("first", "second")):
                pages = ("".join(SIGNS[chip.mark] for chip in self.page(number)[side]) for number in numbers)
                cells = "|".join(f"{page:<{self.page_tokens}}" for page in pages)
                rows.append(f"  {'' if side else head:<16}{name:<7}|{cells}|")
        return rows


def compare(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    tokenizer: Any = None,
    *,
    title: str = "Two prompts",
    page_tokens: int = PAGE_TOKENS,
) -> PromptPair:
    """Two request bodies, rendered and marked. `tokenizer` is that of `labbook.explain.explain`."""
    renderer = as_renderer(tokenizer)
    a, b = renderer.render(as_body(first, "the first body")), renderer.render(as_body(second, "the second body"))
    explanation = explain_rendered(a, b, page_tokens)
    divergence = diverge(a, b) if explanation.is_alarm else None
    runs = divergence.runs if divergence else []
    lost_a = {place for run in runs for place in range(run.a, run.a + run.length)}
    lost_b = {place for run in runs for place in range(run.b, run.b + run.length)}
    num_shared = explanation.shared_tokens
    return PromptPair(title, _chips(a, num_shared, lost_a), _chips(b, num_shared, lost_b), explanation)


def shown(text: str) -> str:
    """A token's text with nothing invisible in it; the end of a prompt in words."""
    if not text:
        return "the end"
    return "".join(_VISIBLE.get(sign) or (sign if sign.isprintable() else _code(sign)) for sign in text)


def _code(sign: str) -> str:
    return f"<{unicodedata.name(sign, f'U+{ord(sign):04X}')}>"


def _pages(num_tokens: int, page_tokens: int) -> int:
    return -(-num_tokens // page_tokens)


def _chips(side: Rendered, num_shared: int, lost: set[int]) -> tuple[Chip, ...]:
    texts = [side.token_text(place) for place in range(len(side.tokens))]
    # A token of half a character has no text of its own.
    return tuple(Chip(shown(text) if text else "…", _mark(at, num_shared, lost)) for at, text in enumerate(texts))


def _mark(place: int, num_shared: int, lost: set[int]) -> Mark:
    if place < num_shared:
        return "shared"
    if place == num_shared:
        return "parting"
    return "lost" if place in lost else "other"
