"""What the trials found: a table for people, and the same with its conditions as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from labbook.record import Record


@dataclass(frozen=True)
class Trial:
    """One run of the instrument. `expected` is the only right verdict."""

    engine: str
    cache: str
    view: str
    expected: str
    record: Record
    seconds: float

    @property
    def is_right(self) -> bool:
        return bool(self.record["verdict"] == self.expected)

    @property
    def kind(self) -> tuple[str, str, str]:
        return self.engine, self.cache, self.view

    @property
    def ratio(self) -> float | None:
        value = self.record["signals"]["clock"]["value"]
        return None if value is None else float(value)

    def line(self, number: int) -> str:
        right = "right" if self.is_right else f"WRONG, expected {self.expected}"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        return (
            f"{self.engine}, cache {self.cache}, {self.view}, run {number}: {self.record['verdict']} ({right}), ratio "
            f"{ratio}, {self.record['groups']} group(s), {self.seconds:.0f} s"
        )


_HEAD = ("server", "cache", "seen", "runs", "right", "wrong verdicts", "ratio, median (range)", "groups", "time a run")


def as_table(trials: Sequence[Trial]) -> str:
    """One row for each kind of trial, in columns."""
    rows = [_HEAD, *_rows(trials)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def as_markdown(trials: Sequence[Trial], conditions: Mapping[str, str]) -> str:
    """The table, how it came about, and what it does not show."""
    table = [_row(_HEAD), _row(["---"] * len(_HEAD)), *map(_row, _rows(trials))]
    told = [f"- {name}: {value}" for name, value in conditions.items()]
    return "\n".join(
        [
            "# Does the verdict hold?",
            "",
            "Each run is one `measure-prefix-cache` on a real server whose cache is known to be on or off. Right is",
            '`reused` with the cache on and `not_reused` with it off; `inconclusive` counts as wrong. "Clock alone" is',
            "the same server behind a proxy that takes out usage, timings and metrics.",
            "",
            *table,
            "",
            "`ratio` is the time of a warm request as a share of the time without reuse; `groups` is how many groups",
            "of one cold, three warm and one control request it took until the verdict was settled.",
            "",
            "## Conditions",
            "",
            *told,
            "",
            "## What this does not show",
            "",
            "- Other models, longer prompts, servers under load, caches that are partly evicted.",
            "- How often a verdict is wrong on a machine that is busier than this one was.",
            "",
        ]
    )


def _rows(trials: Sequence[Trial]) -> list[tuple[str, ...]]:
    kinds = dict.fromkeys(trial.kind for trial in trials)
    return [_cells(kind, [trial for trial in trials if trial.kind == kind]) for kind in kinds]


def _cells(kind: tuple[str, str, str], trials: Sequence[Trial]) -> tuple[str, ...]:
    wrong = Counter(str(trial.record["verdict"]) for trial in trials if not trial.is_right)
    ratios = [trial.ratio for trial in trials if trial.ratio is not None]
    groups = Counter(int(trial.record["groups"]) for trial in trials)
    return (
        *kind,
        str(len(trials)),
        str(sum(trial.is_right for trial in trials)),
        ", ".join(f"{count} {word}" for word, count in wrong.items()) or "none",
        f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})" if ratios else "-",
        ", ".join(f"{count} x {number}" for number, count in sorted(groups.items())),
        f"{median(trial.seconds for trial in trials):.0f} s",
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
