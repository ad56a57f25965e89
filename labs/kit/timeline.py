"""The timeline of a burst without a screen: which request waits, computes its prompt or decodes, step by step.

It is made from the events that the engine records of each request, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from labs.kit.burst import Burst, Track

Unit = Literal["steps", "seconds"]
UNITS: dict[Unit, str] = {"steps": "engine steps", "seconds": "seconds"}
WAITING, PREFILL, DECODE = "waiting", "prefill", "decode"
LETTERS = {WAITING: "W", PREFILL: "P", DECODE: "D"}
RELEASED = "released"
RELEASED_SIGN = ">"
LEGEND = "W waits, P computes prompt tokens, D decodes one token; > released: what it waited for is there"


@dataclass(frozen=True)
class Segment:
    """`first` to `last` are steps, both included, in which a request is in one state. Steps count from 1."""

    state: str
    first: int
    last: int

    @property
    def num_steps(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Row:
    """One request. `released_after` is the step at whose end its flight let it go; None when it waited in none."""

    name: str
    segments: tuple[Segment, ...]
    first_token_step: int
    released_after: int | None
    restored_tokens: int
    computed_tokens: int

    def state_in(self, step: int) -> str | None:
        """None: it has not arrived yet, or it is over."""
        return next((part.state for part in self.segments if part.first <= step <= part.last), None)


@dataclass(frozen=True)
class Timeline:
    """One burst under one policy. `step_ends_s[k]` is the end of step k + 1, in seconds from the first arrival."""

    policy: str
    rows: tuple[Row, ...]
    step_ends_s: tuple[float, ...]

    @property
    def num_steps(self) -> int:
        return len(self.step_ends_s)

    def length(self, unit: Unit) -> float:
        """How long the burst takes, in steps or in seconds."""
        return float(self.num_steps) if unit == "steps" else self.step_ends_s[-1]

    def end_of(self, step: int, unit: Unit) -> float:
        """Where a step ends on the axis; step 0 ends at 0."""
        if unit == "steps" or not step:
            return float(step)
        return self.step_ends_s[step - 1]

    def span(self, segment: Segment, unit: Unit) -> tuple[float, float]:
        return self.end_of(segment.first - 1, unit), self.end_of(segment.last, unit)

    def as_text(self) -> str:
        """The chart in steps, one letter for each step: the twin of the widget, the same on every machine."""
        width = max(len(row.name) for row in self.rows)
        numbers = "".join(f"{step if step % 5 == 0 else '':>2}" for step in range(1, self.num_steps + 1))
        lines = [f"{self.policy}: {self.num_steps} steps", f"{'step':<{width}} {numbers}".rstrip()]
        return "\n".join([*lines, *(f"{row.name:<{width}} {self._letters(row)}".rstrip() for row in self.rows)])

    def sentences(self, unit: Unit) -> list[str]:
        """What each request does, in words."""
        return [f"{row.name}: {', '.join(self._told(row, unit))}." for row in self.rows]

    def _letters(self, row: Row) -> str:
        cells = []
        for step in range(1, self.num_steps + 1):
            sign = RELEASED_SIGN if row.released_after == step - 1 else " "
            state = row.state_in(step)
            cells.append(sign + (LETTERS[state] if state else "."))
        return "".join(cells)

    def _told(self, row: Row, unit: Unit) -> Iterator[str]:
        for segment in row.segments:
            yield f"{segment.state} {self.told_span(segment, unit)}"
            if row.released_after == segment.last:
                yield RELEASED

    def told_span(self, segment: Segment, unit: Unit) -> str:
        if unit == "steps":
            one = segment.first == segment.last
            return f"in step {segment.first}" if one else f"in steps {segment.first} to {segment.last}"
        start_s, end_s = self.span(segment, unit)
        if self.length(unit) < 1:
            return f"from {1000 * start_s:.0f} to {1000 * end_s:.0f} ms"
        return f"from {start_s:.2f} to {end_s:.2f} s"


def timeline_of(policy: str, burst: Burst) -> Timeline:
    """Raises ValueError when a request of the burst has no first token: such a track has no end of its prompt."""
    return Timeline(policy, tuple(_row(track) for track in burst.tracks), burst.step_ends_s)


def _row(track: Track) -> Row:
    names = [event.name for event in track.events]
    if "first_token" not in names:
        raise ValueError(f"{track.name} ended without a first token: {', '.join(names)}")
    released = [event.step for event in track.events if event.name == "released"]
    return Row(
        track.name,
        tuple(_segments(track)),
        track.step_of("first_token"),
        released[0] if released else None,
        track.metrics.cached_tokens,
        track.metrics.computed_tokens,
    )


def _segments(track: Track) -> Iterator[Segment]:
    """Neighbouring steps in one state make a segment. A step without a chunk of the prompt is one of waiting."""
    first, last = track.events[0].step + 1, track.step_of("ended")
    prefilled = {event.step for event in track.events if event.name == "prefill"}
    first_token = track.step_of("first_token")

    def state(step: int) -> str:
        if step > first_token:
            return DECODE
        return PREFILL if step in prefilled else WAITING

    for name, steps in groupby(range(first, last + 1), state):
        numbers = list(steps)
        yield Segment(name, numbers[0], numbers[-1])


def timelines_text(timelines: Sequence[Timeline]) -> str:
    return "\n\n".join([*(timeline.as_text() for timeline in timelines), LEGEND])
