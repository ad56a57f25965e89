"""What in one body will keep its prefix from being shared: told before anything is sent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labbook.explain.advice import fix, name
from labbook.explain.body import Body, as_body
from labbook.explain.lint_rules import Seen, all_rules
from labbook.explain.pair import as_renderer
from labbook.explain.regions import Regions, regions
from labbook.explain.rendered import Rendered


@dataclass(frozen=True)
class Finding:
    """One place of a body. `level` is `warning`, or `hint` for what is only a risk; `position` is in `unit`s from 0."""

    level: str
    cause: str
    field: str
    position: int
    unit: str
    text: str
    why: str

    @property
    def fix(self) -> str:
        return fix(self.cause)

    @property
    def sentence(self) -> str:
        return f"{self.level}: {name(self.cause)} in {self.field}, {self.unit} {self.position:,}: {self.why}"


def lint(body: Mapping[str, Any] | Body, tokenizer: Any = None) -> list[Finding]:
    """Warnings and hints about one body, in the order of its prompt. `tokenizer` is `explain`'s."""
    rendered = as_renderer(tokenizer).render(as_body(body, "the body"))
    known = regions(rendered)
    found = [_finding(seen, rendered, known) for rule in all_rules() for seen in _unique(rule, rendered, known)]
    return sorted(found, key=lambda one: (one.position, one.level != "warning"))


def _unique(rule: Callable[[Rendered, Regions], Iterator[Seen]], rendered: Rendered, known: Regions) -> Iterator[Seen]:
    """The first place of each cause in each field: a text with a thousand CRLFs has one fault."""
    told: set[tuple[str, str]] = set()
    for seen in rule(rendered, known):
        region = known.covering(seen.offset)
        key = (seen.cause, region.path if region else "")
        if key not in told:
            told.add(key)
            yield seen


def _finding(seen: Seen, rendered: Rendered, known: Regions) -> Finding:
    region = known.covering(seen.offset)
    field = seen.field or (region.field_at(rendered, seen.offset) if region else known.between(seen.offset))
    position = bisect_right(range(len(rendered.tokens)), seen.offset, key=rendered.start) - 1
    return Finding(seen.level, seen.cause, field, max(0, position), rendered.unit, seen.text, seen.why)
