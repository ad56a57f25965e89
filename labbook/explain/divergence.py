"""Where two rendered bodies part: the token, the character, the field, and what each side has there."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from labbook.explain.arithmetic import Run, equal_runs
from labbook.explain.regions import Region, Regions, regions
from labbook.explain.rendered import Rendered
from labbook.sequences import shared_length


@dataclass(frozen=True)
class Texts:
    """One field on both sides: equal up to `offset`, where the first difference is."""

    a: str
    b: str
    offset: int


@dataclass(frozen=True)
class Divergence:
    """Two rendered bodies whose token at `position` differs, or of which one ends there."""

    a: Rendered
    b: Rendered
    position: int

    @cached_property
    def offset(self) -> int:
        """The first differing character: in the token at `position`, or behind it when a split alone differs."""
        begin = self.a.start(self.position)
        if self.a.text[:begin] != self.b.text[:begin]:
            begin = 0
        return begin + shared_length(self.a.text[begin:], self.b.text[begin:])

    @cached_property
    def regions(self) -> tuple[Regions, Regions]:
        return regions(self.a), regions(self.b)

    @cached_property
    def region(self) -> Region | None:
        """The field that differs here: one that covers the place on either side, or ends exactly there."""
        in_a, in_b = self.regions
        candidates = [in_a.covering(self.offset), in_b.covering(self.offset)]
        candidates += [in_a.ending(self.offset), in_b.ending(self.offset)]
        found = [region for region in candidates if region is not None]
        return next((region for region in found if self._differs(region)), None)

    @cached_property
    def field(self) -> str:
        if self.region is not None:
            side = self.a if self.region in self.regions[0].listed else self.b
            return self.region.field_at(side, self.offset)
        for rendered, known in zip((self.a, self.b), self.regions, strict=True):
            if covering := known.covering(self.offset):
                return covering.field_at(rendered, self.offset)
        return self.regions[1].between(self.offset)

    @cached_property
    def texts(self) -> Texts | None:
        """The differing field as it was rendered; None for template text."""
        if self.region is None:
            return None
        a, b = (self._text_of(side, known) for side, known in zip((self.a, self.b), self.regions, strict=True))
        if a is None or b is None:
            return None
        return Texts(a, b, shared_length(a, b))

    @cached_property
    def runs(self) -> list[Run]:
        """Equal tokens behind the difference, which no prefix cache can reuse."""
        return equal_runs(self.a.tokens, self.b.tokens, self.position)

    @property
    def equal_after(self) -> int:
        return sum(run.length for run in self.runs)

    @cached_property
    def equal_in_fields(self) -> int:
        """Of these, the tokens in fields of the body: the template's own text is equal everywhere."""
        return sum(self._in_fields(run) for run in self.runs)

    @cached_property
    def equal_in_field(self) -> int:
        """Of these, the tokens in the field that differs."""
        return sum(self._in_fields(run, self.region.path) for run in self.runs) if self.region else 0

    @cached_property
    def movable(self) -> int:
        """Of these, the tokens before the template's last words, which no order of the fields brings forward."""
        if not self.b.text:
            return self.equal_after
        end = self._token_at(max((region.end for region in self.regions[1].listed), default=len(self.b.text)))
        return sum(max(0, min(run.b + run.length, end) - run.b) for run in self.runs)

    @property
    def template_field(self) -> str:
        """The place in template text, on the side that has none of a field there."""
        for known in self.regions:
            if known.covering(self.offset) is None:
                return known.between(self.offset)
        return self.field

    @property
    def cached_otherwise(self) -> int:
        """Tokens of `b` behind the difference whose text the cache holds as other tokens: up to the end of what both
        bodies say, and of the answer that was generated after `a`."""
        mine, shorter = self.b.body.messages, min(len(self.a.body.messages), len(self.b.body.messages))
        has_answer = shorter < len(mine) and mine[shorter].get("role") == "assistant"
        last = shorter if has_answer else shorter - 1
        known = [
            region.end for region in self.regions[1].listed if region.message is not None and region.message <= last
        ]
        ends = known if self.b.body.is_chat else [min(len(self.a.text), len(self.b.text))]
        return max(0, self._token_at(max(ends, default=0)) - self.position)

    def _in_fields(self, run: Run, path: str | None = None) -> int:
        begin, end = self.b.start(run.b), self.b.start(run.b + run.length)
        listed = [region for region in self.regions[1].listed if path in (None, region.path)]
        chars = sum(max(0, min(end, region.end) - max(begin, region.start)) for region in listed)
        return round(run.length * chars / max(1, end - begin))

    def _token_at(self, offset: int) -> int:
        """How many tokens of `b` begin before `offset`."""
        return bisect_left(range(len(self.b.tokens)), offset, key=self.b.start)

    def _differs(self, region: Region) -> bool:
        a, b = (known.of(region.path) for known in self.regions)
        if a is None or b is None:
            return True
        return self.a.text[a.start : a.end] != self.b.text[b.start : b.end]

    def _text_of(self, side: Rendered, known: Regions) -> str | None:
        path = self.region.path if self.region else ""
        if found := known.of(path):
            return side.text[found.start : found.end]
        return next((leaf.text for leaf in side.body.leaves if leaf.path == path), None)


def diverge(a: Rendered, b: Rendered) -> Divergence | None:
    """Where the two part; None when their tokens are equal."""
    if a.tokens == b.tokens:
        return None
    return Divergence(a, b, shared_length(a.tokens, b.tokens))


def is_cut_off(divergence: Divergence) -> bool:
    """True when one prompt is the beginning of the other."""
    return divergence.position == min(len(divergence.a.tokens), len(divergence.b.tokens))
