"""A growth record as plain text: conditions, a row for each length, the two lines."""

from __future__ import annotations

from statistics import median
from typing import Any

from labbook.conditions import closing_lines, opening_lines
from labbook.record import Record

EXPERIMENT = "growth"


def is_growth(record: Record) -> bool:
    return record.get("experiment") == EXPERIMENT and {"lines", "lengths", "per", "signals"} <= record.keys()


def growth_lines_of_text(record: Record) -> list[str]:
    """Everything but signals and verdict, which every experiment has."""
    return [*_conditions(record), "", *_lengths(record), "", *_fits(record)]


def _conditions(record: Record) -> list[str]:
    pairs = record["lengths"]
    return [
        *opening_lines(record),
        f"  prefix     {record['prefix_source']}, {record['prefix_chars']} characters at most",
        f"  requests   1 warm-up (discarded), {len(pairs)} pairs of cold and warm in random order; "
        f"{record['failed']} failed",
        *closing_lines(record),
    ]


def _lengths(record: Record) -> list[str]:
    per = f"{record['per']}s"
    lines = [f"  {'words of prefix':>16}{'pairs':>8}{per:>10}{'cold, ' + record['timed']:>34}{'warm':>14}"]
    for words in sorted({pair["words"] for pair in record["lengths"]}):
        pairs = [pair for pair in record["lengths"] if pair["words"] == words]
        length = median(pair["cold_length"] for pair in pairs)
        cold, warm = (median(pair[name] for pair in pairs) * 1000 for name in ("cold_s", "warm_s"))
        lines.append(f"  {words:>16,}{len(pairs):>8}{length:>10,.0f}{cold:>31,.1f} ms{warm:>11,.1f} ms")
    return lines


def _fits(record: Record) -> list[str]:
    per, lines = record["per"], []
    for name in ("cold", "warm"):
        slope, fixed = record["lines"][name]["slope_ms"], record["lines"][name]["fixed_ms"]
        lines.append(f"  {name}: {_told(slope, f'ms a {per}', 3)}, and {_told(fixed, 'ms besides', 0)}")
    return [*lines, f"  intervals hold with {record['lines']['cold']['slope_ms']['confidence']:.0%}"]


def _told(interval: dict[str, Any], unit: str, digits: int) -> str:
    value, low, high = (f"{interval[name]:,.{digits}f}" for name in ("value", "low", "high"))
    return f"{value} {unit} ({low} to {high})"
