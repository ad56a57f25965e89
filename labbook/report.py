"""A record as plain text for a person: conditions, times, signals, verdict."""

from __future__ import annotations

import textwrap
from typing import Any

from labbook.burst_report import burst_text, is_burst
from labbook.conditions import closing_lines, opening_lines
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
    "questions",
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
    """True for a cold and warm record and for a burst; people may write others into their notebook."""
    return is_burst(record) or record.keys() >= _NEEDED


def as_text(record: Record) -> str:
    """The whole report of a record. Fields that are missing are left out, or said to be."""
    if is_burst(record):
        return "\n".join(map(printable, burst_text(record).split("\n")))
    lines = [*_conditions(record), "", *_times(record), "", *_signals(record), "", *_verdict(record)]
    return "\n".join(map(printable, lines))


def _conditions(record: Record) -> list[str]:
    lines = opening_lines(record)
    shared, prompt = record.get("shared_prefix_tokens"), record.get("prompt_tokens")
    tokens = ""
    if shared is not None and prompt is not None:
        about = "about " if str(record.get("shared_prefix_source", "")).startswith("estimated") else ""
        tokens = f"; {about}{shared} of {prompt} prompt tokens are shared"
    lines.append(f"  prefix     {record['prefix_source']}, {record['prefix_chars']} characters{tokens}")
    lines.append(
        f"  requests   1 warm-up (discarded, {_ms(record['warm_up_s'])}), 1 cold, {record['questions']} warm, "
        f"1 control; {record['failed']} failed"
    )
    return lines + closing_lines(record)


def _times(record: Record) -> list[str]:
    lines = [f"  {'request':<26}{record['timed']:>26}{'prompt tokens':>16}{'cached tokens':>16}"]
    key = "ttft_s" if record["timed"] == "time to first token" else "total_s"
    for request in record["requests"]:
        phase = _PHASES.get(request["phase"], request["phase"])
        if request["error"] is not None:
            lines.append(f"  {phase:<26}{'failed':>26}")
            continue
        lines.append(
            f"  {phase:<26}{_ms(request[key]):>26}{_or_dash(request['prompt_tokens']):>16}"
            f"{_or_dash(request['cached_tokens']):>16}"
        )
    warm = record["warm_s"]
    lines.append(
        f"  warm / cold {record['warm_over_cold']:.3f}: median of {warm['count']} warm requests "
        f"{_ms(warm['p50'])} ({_ms(warm['min'])} to {_ms(warm['max'])}), "
        f"1 cold request {_ms(record['cold_s'])}"
    )
    return lines + _against_control(record)


def _against_control(record: Record) -> list[str]:
    """The ratio that the clock signal judges, and a warning where the two times without reuse are far apart."""
    cold_s, control_s = record["cold_s"], record.get("control_s")
    if control_s is None:
        return []
    fastest_s, slowest_s = sorted((cold_s, control_s))
    if not fastest_s:
        return []
    lines = [
        f"  warm / the faster of cold and control {record['warm_s']['p50'] / fastest_s:.3f}: the clock "
        f"signal is judged by this, {_ms(fastest_s)} without reuse"
    ]
    if slowest_s > UNSTEADY_ABOVE * fastest_s:
        lines.append(
            f"  cold and control differ {slowest_s / fastest_s:.1f} times: the machine was busy or still warming up; "
            "measure again"
        )
    return lines


def _signals(record: Record) -> list[str]:
    lines = [f"  {'signal':<15}{'value':>22}  {'supports':<14}why"]
    for name, signal in record["signals"].items():
        value = "absent" if signal["value"] is None else f"{_number(signal['value'])} {signal['unit']}"
        supports = signal["supports"] or ("nothing" if signal["value"] is None else "cannot tell")
        head = f"  {name.replace('_', ' '):<15}{value:>22}  {supports:<14}"
        lines += textwrap.wrap(signal["why"], _WIDTH + 15, initial_indent=head, subsequent_indent=" " * len(head))
    return lines


def _verdict(record: Record) -> list[str]:
    return textwrap.wrap(f"verdict: {record['verdict']}. {record['verdict_reason']}.", _WIDTH, subsequent_indent="  ")


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


def _or_dash(value: Any) -> str:
    return "-" if value is None else f"{value:,}"
