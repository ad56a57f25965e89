"""A record as plain text for a person: conditions, times, signals, verdict."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any

from labbook.burst_report import burst_text, is_burst
from labbook.conditions import closing_lines, opening_lines
from labbook.growth_report import growth_lines_of_text, is_growth
from labbook.output import printable
from labbook.record import Record
from labbook.signals import UNSTEADY_ABOVE

_WIDTH = 100
_PHASES = {"control": "control (changed prefix)"}  # said once; elsewhere it is the control
_NEEDED = {
    "base_url",
    "model",
    "prefix_source",
    "prefix_chars",
    "failed",
    "warm_up_s",
    "recorded_at",
    "environment",
    "timed",
    "requests",
    "warm_s",
    "cold_s",
    "warm_over_cold",
    "signals",
    "verdict",
    "verdict_reason",
}


def can_tell(record: Record) -> bool:
    """True for the records of all experiments; people may write others into their notebook."""
    return is_burst(record) or is_growth(record) or record.keys() >= _NEEDED


def as_text(record: Record) -> str:
    """The whole report of a record. Fields that are missing are left out, or said to be."""
    if is_burst(record):
        return "\n".join(map(printable, burst_text(record).split("\n")))
    body = growth_lines_of_text(record) if is_growth(record) else [*_conditions(record), "", *_times(record)]
    lines = [*body, "", *_signals(record), "", *_verdict(record)]
    return "\n".join(map(printable, lines))


def _conditions(record: Record) -> list[str]:
    lines = opening_lines(record)
    shared, prompt = record.get("shared_prefix_tokens"), record.get("prompt_tokens")
    tokens = ""
    if shared is not None and prompt is not None:
        about = "about " if str(record.get("shared_prefix_source", "")).startswith("estimated") else ""
        tokens = f"; {about}{shared} of {prompt} prompt tokens are shared"
    lines.append(f"  prefix     {record['prefix_source']}, {record['prefix_chars']} characters{tokens}")
    counts = Counter(request["phase"] for request in record["requests"])
    sent = ", ".join(f"{count} {phase}" for phase, count in counts.items())
    lines.append(f"  requests   1 warm-up (discarded, {_ms(record['warm_up_s'])}), {sent}; {record['failed']} failed")
    if record.get("groups", 1) > 1:
        rule = f"{record['groups']}: {record['repeat_rule']}"
        lines += textwrap.wrap(rule, _WIDTH, initial_indent="  groups     ", subsequent_indent=" " * 13)
    return lines + closing_lines(record)


def _times(record: Record) -> list[str]:
    lines = [f"  {'request':<28}{record['timed']:>34}{'prompt tokens':>16}{'cached tokens':>16}"]
    rows = _rows(record) if record.get("groups", 1) == 1 else _rows_of_phases(record)
    lines += [f"  {name:<28}{seconds:>34}{prompt:>16}{cached:>16}" for name, seconds, prompt, cached in rows]
    warm, interval = record["warm_s"], record.get("warm_over_cold_interval")
    within = "" if interval is None else f" ({interval['low']:.3f} to {interval['high']:.3f})"
    colds = sum(request["phase"] == "cold" and request["error"] is None for request in record["requests"])
    lines.append(
        f"  warm / cold {record['warm_over_cold']:.3f}{within}: median of {warm['count']} warm requests "
        f"{_ms(warm['p50'])} ({_ms(warm['min'])} to {_ms(warm['max'])}), "
        f"{colds} cold {_ms(record['cold_s'])}"
    )
    return lines + _against_control(record)


def _key(record: Record) -> str:
    return "ttft_s" if record["timed"] == "time to first token" else "total_s"


def _rows(record: Record) -> Iterator[tuple[str, str, str, str]]:
    """One row for each request."""
    for request in record["requests"]:
        phase = _PHASES.get(request["phase"], request["phase"])
        if request["error"] is not None:
            yield phase, "failed", "", ""
        else:
            tokens = _or_dash(request["prompt_tokens"]), _or_dash(request["cached_tokens"])
            yield phase, _ms(request[_key(record)]), *tokens


def _rows_of_phases(record: Record) -> Iterator[tuple[str, str, str, str]]:
    """One row for each phase: medians over the groups, and from the least to the most."""
    for phase in dict.fromkeys(request["phase"] for request in record["requests"]):
        answered = [one for one in record["requests"] if one["phase"] == phase and one["error"] is None]
        times = [one[_key(record)] for one in answered]
        shown = f"{_ms(median(times))} ({_ms(min(times))} to {_ms(max(times))})" if times else "failed"
        yield (
            f"{_PHASES.get(phase, phase)}, {len(answered)}",
            shown,
            _range([one["prompt_tokens"] for one in answered]),
            _range([one["cached_tokens"] for one in answered]),
        )


def _range(counts: list[int | None]) -> str:
    known = [count for count in counts if count is not None]
    if not known or len(known) < len(counts):
        return "-"
    return f"{min(known):,}" if min(known) == max(known) else f"{min(known):,}-{max(known):,}"


def _against_control(record: Record) -> list[str]:
    """A warning where two times without reuse of a single group are far apart: a second group would show why."""
    cold_s, control_s = record["cold_s"], record.get("control_s")
    if control_s is None or record.get("groups", 1) > 1 or record.get("experiment") == "control":
        return []
    fastest_s, slowest_s = sorted((cold_s, control_s))
    if not fastest_s or slowest_s <= UNSTEADY_ABOVE * fastest_s:
        return []
    return [
        f"  cold and control differ {slowest_s / fastest_s:.1f} times: the machine was busy or still warming up; "
        "measure again"
    ]


def _signals(record: Record) -> list[str]:
    lines = [f"  {'signal':<15}{'value':>30}  {'supports':<14}why"]
    for name, signal in record["signals"].items():
        value = "absent" if signal["value"] is None else f"{_number(signal['value'])} {signal['unit']}"
        supports = signal["supports"] or ("nothing" if signal["value"] is None else "cannot tell")
        head = f"  {name.replace('_', ' '):<15}{value:>30}  {supports:<14}"
        lines += textwrap.wrap(signal["why"], _WIDTH + 23, initial_indent=head, subsequent_indent=" " * len(head))
    return lines


def _verdict(record: Record) -> list[str]:
    return textwrap.wrap(f"verdict: {record['verdict']}. {record['verdict_reason']}.", _WIDTH, subsequent_indent="  ")


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


def _or_dash(value: Any) -> str:
    return "-" if value is None else f"{value:,}"
