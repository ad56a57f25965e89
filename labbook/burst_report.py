"""A burst record as plain text and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labbook.conditions import closing_lines, opening_lines
from labbook.errors import UsageError
from labbook.figures import COLOURS, HATCHES, DrawnFigure, draw, finished
from labbook.record import Record

EXPERIMENT = "burst"
TITLES = {
    "identical": "identical, at once",
    "document": "one document, at once",
    "distinct": "distinct, at once",
    "late": "identical, one late",
}
_BARS = (
    ("first_token_mean_s", "first token, mean"),
    ("first_token_slowest_s", "first token, slowest"),
    ("completion_mean_s", "completion, mean"),
    ("completion_slowest_s", "completion, slowest"),
)


def is_burst(record: Record) -> bool:
    return record.get("experiment") == EXPERIMENT and {"cold", "bursts", "burst_requests"} <= record.keys()


def burst_text(record: Record) -> str:
    """Conditions, a line for each burst, and what casts doubt on them."""
    return "\n".join([*_conditions(record), "", *_table(record), *_notes(record)])


def _conditions(record: Record) -> list[str]:
    lines = opening_lines(record)
    tokens = "" if record["prompt_tokens"] is None else f"; {record['prompt_tokens']} prompt tokens a request"
    lines.append(f"  prefix     {record['prefix_source']}, {record['prefix_chars']} characters{tokens}")
    lines.append(
        f"  requests   1 warm-up (discarded), {len(record['cold']['requests'])} single cold, bursts of "
        f"{record['burst_requests']}, at most {record['new_tokens']} new tokens; {record['failed']} failed"
    )
    return lines + closing_lines(record)


def _table(record: Record) -> list[str]:
    cold = record["cold"]
    head = f"  {'':<24}{'first token (ms)':^26}{'completion (ms)':^26}{'tokens computed':^28}"
    columns = f"  {'requests':<24}{'mean':>9}{'slowest':>9}{'/ cold':>8}{'mean':>9}{'slowest':>9}{'/ cold':>8}"
    lines = [head, f"{columns}{'usage':>9}{'/ cold':>8}{'counters':>10}"]
    lines.append(
        f"  {'single cold':<24}{_ms(cold['first_token_s'])}{'':>17}{_ms(cold['completion_s'])}{'':>17}"
        f"{_count(cold['computed_tokens'], 9)}{'':>8}{_count(cold['computed_tokens_by_counters'], 10)}"
    )
    for kind, burst in record["bursts"].items():
        name = f"{len(burst['requests'])} {TITLES.get(kind, kind)}"
        cells = [
            *(_ms(burst["first_token_mean_s"]), _ms(burst["first_token_slowest_s"])),
            *(_ratio(burst["first_token_mean_over_cold"]), _ms(burst["completion_mean_s"])),
            *(_ms(burst["completion_slowest_s"]), _ratio(burst["completion_mean_over_cold"])),
            *(_count(burst["computed_tokens"], 9), _ratio(burst["computed_over_cold"])),
            _count(burst["computed_tokens_by_counters"], 10),
        ]
        lines.append(f"  {name:<24}" + "".join(cells))
    return lines


def _notes(record: Record) -> list[str]:
    """Warnings, and the reason behind every dash; the same reason once."""
    notes = [f"  warning: {warning}" for warning in record["warnings"]]
    reasons = dict.fromkeys(
        f"{'single cold' if kind is None else kind}: {why}"
        for kind, part in [(None, record["cold"]), *record["bursts"].items()]
        for why in part["absent"].values()
    )
    notes += [f"  absent, {reason}" for reason in reasons]
    return ["", *notes] if notes else []


def burst_bars(record: Record, path: str | Path | None = None) -> DrawnFigure:
    """Bars for first token and completion, mean and slowest, of each kind of burst; the line is one cold request."""
    if not is_burst(record):
        raise UsageError(f"a record of experiment {record.get('experiment')!r} holds no burst: choose another")
    kinds = list(record["bursts"])
    caption = _caption(record)
    figure, axes = draw(f"Bursts of {record['burst_requests']}", "requests", "time (s)", caption)
    figure.set_size_inches(8.6, 4.4)
    for row, (key, label) in enumerate(_BARS):
        drawn = [(place, record["bursts"][kind][key]) for place, kind in enumerate(kinds)]
        known = [(place, seconds) for place, seconds in drawn if seconds is not None]
        axes.bar(
            [place + 0.2 * (row - 1.5) for place, _ in known],
            [seconds for _, seconds in known],
            0.2,
            label=label,
            color=COLOURS[row],
            hatch=HATCHES[row],
            edgecolor="black",
            linewidth=0.8,
        )
    for key, style, label in (("first_token_s", "--", "first token"), ("completion_s", ":", "completion")):
        if record["cold"][key] is not None:
            axes.axhline(record["cold"][key], color="black", linestyle=style, label=f"single cold, {label}")
    axes.set_xticks(range(len(kinds)), [TITLES.get(kind, kind).replace(", ", ",\n") for kind in kinds], fontsize=9)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return finished(figure, burst_sentence(record), caption, path)


def burst_sentence(record: Record) -> str:
    """What the bars show, in words."""
    cold = record["cold"]
    name = f"{record['label']}: " if record.get("label") else ""
    told = [_burst_words(kind, burst) for kind, burst in record["bursts"].items()]
    return (
        f"{name}a single cold request has its first token after {_s(cold['first_token_s'])} and ends after "
        f"{_s(cold['completion_s'])}. Bursts of {record['burst_requests']}, mean and slowest: {'; '.join(told)}."
    )


def _burst_words(kind: str, burst: dict[str, Any]) -> str:
    ratio = burst["first_token_mean_over_cold"]
    times = "" if ratio is None else f", {ratio:.2f} times cold"
    return (
        f"{TITLES.get(kind, kind)}: first token {_s(burst['first_token_mean_s'])} and "
        f"{_s(burst['first_token_slowest_s'])}{times}, completion {_s(burst['completion_mean_s'])} and "
        f"{_s(burst['completion_slowest_s'])}"
    )


def _caption(record: Record) -> str:
    engine = " ".join(str(record[name]) for name in ("engine", "engine_version") if record.get(name))
    tokens = "" if record["prompt_tokens"] is None else f"prompts of {record['prompt_tokens']} tokens; "
    return (
        f"n = 1 burst of each kind, {len(record['cold']['requests'])} single cold requests (lines: their mean); "
        f"{tokens}{record['model']}{' on ' + engine if engine else ''}; measured from {record['environment']['device']}"
    )


def _ms(seconds: float | None) -> str:
    return f"{'-':>9}" if seconds is None else f"{seconds * 1000:>9,.1f}"


def _ratio(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:>8.2f}"


def _count(value: float | None, width: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width},.0f}"


def _s(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
