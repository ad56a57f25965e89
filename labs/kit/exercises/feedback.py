"""An outcome as text: what was expected, what came, what usually causes it. The same in a terminal and a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from labs.kit.exercises.outcome import Outcome

_WIDTH = 100
_MARK = {"passed": "[passed]", "wrong": "[wrong]", "crashed": "[crashed]", "not attempted": "[not attempted]"}


def as_text(outcome: Outcome) -> str:
    """One part of a lab."""
    lines = [f"{_MARK[outcome.kind]} {outcome.part}" + (f": {outcome.message}" if outcome.message else "")]
    if outcome.check:
        lines.append(_field("check", outcome.check))
    if outcome.detail:
        lines += [_detail(line) for line in outcome.detail.rstrip().splitlines()]
    if outcome.expected is not None:
        lines.append(_field("expected", outcome.expected))
    if outcome.actual is not None:
        lines.append(_field("what came", outcome.actual))
    if outcome.printed:
        lines.append(_field("your code printed", outcome.printed))
    if outcome.usual_cause:
        lines.append(_field("usual cause", outcome.usual_cause))
    if outcome.why_it_matters:
        lines.append(_field("why it matters", outcome.why_it_matters))
    return "\n".join(lines)


def all_as_text(outcomes: Sequence[Outcome]) -> str:
    """Every part, then how many passed."""
    num_passed = sum(outcome.passed for outcome in outcomes)
    same = len({(outcome.message, outcome.detail) for outcome in outcomes}) == 1 and outcomes[0].kind == "crashed"
    told = [as_text(outcomes[0])] if same else [as_text(outcome) for outcome in outcomes]
    return "\n\n".join([*told, f"{num_passed} of {len(outcomes)} passed."])


def _detail(line: str) -> str:
    """A drawing keeps its blanks; only a line that is too long for a terminal is broken."""
    if len(line) <= _WIDTH:
        return f"    {line}"
    return textwrap.fill(line, _WIDTH, initial_indent="    ", subsequent_indent="      ", break_long_words=False)


def _field(name: str, value: str) -> str:
    head = f"    {name}: "
    paragraphs = value.splitlines() or [""]
    return "\n".join(
        textwrap.fill(line, _WIDTH, initial_indent=head if first else "      ", subsequent_indent="      ")
        for first, line in zip([True] + [False] * len(paragraphs), paragraphs, strict=False)
    )
