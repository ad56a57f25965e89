"""The numbers of a record, whatever its experiment: counts of tokens and requests, and times with their reach.

A field tells its unit by its name (`_tokens`, `_s`, `_over_`), so that records of new experiments need no new code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeGuard

from labbook.record import Record

# Parts of a record that are conditions, or are looked at in a way of their own.
_NO_NUMBERS = {"environment", "absent", "requests", "signals", "identity", "nonces", "warm_up", "server_timings_sample"}
_COUNTS = {"failed": "requests", "questions": "requests", "groups": "groups", "burst_requests": "requests"}


@dataclass(frozen=True)
class Reach:
    """From where to where a value reaches; `what` says in which sense."""

    low: float
    high: float
    what: str


@dataclass(frozen=True)
class Number:
    value: float
    unit: str
    reach: Reach | None = None


def counts(record: Record) -> dict[str, Number]:
    """What does not depend on how busy the machine was, by name: tokens of prompts, counters and phases; requests."""
    return dict(_counts(record))


def times(record: Record) -> dict[str, Number]:
    """Seconds, and ratios of seconds, by name, with the interval or the range that the record carries."""
    return dict(_times(record))


def _counts(record: Record) -> Iterator[tuple[str, Number]]:
    for name, value, reach in _leaves(record):
        last = name.rpartition(".")[2]
        if not _is_number(value):
            continue
        if last.endswith("_tokens"):
            yield _words(name), Number(value, "tokens", reach)
        elif last.startswith("computed_over_"):
            yield _words(name), Number(value, "ratio", reach)
    for phase, tokens in _cached_tokens(record).items():
        reach = Reach(min(tokens), max(tokens), f"range of {len(tokens)}") if len(tokens) > 1 else None
        yield f"cached tokens, {phase}", Number(median(tokens), "tokens", reach)
    for name, unit in _COUNTS.items():
        if _is_number(record.get(name)):
            yield _words(name), Number(record[name], unit)


def _times(record: Record) -> Iterator[tuple[str, Number]]:
    for name, value, reach in _leaves(record):
        last = name.rpartition(".")[2]
        if last.endswith("_s"):
            unit = "s"
        elif "_over_" in last and not last.startswith("computed_over_"):
            unit = "ratio"
        else:
            continue
        if isinstance(value, dict) and _is_number(value.get("p50")):
            yield f"{_words(name)}, median", Number(value["p50"], unit, reach or _range(value))
        elif _is_number(value):
            yield _words(name), Number(value, unit, reach)


def _cached_tokens(record: Record) -> dict[str, list[float]]:
    """What the answers of each phase told, phases in the order of their first request."""
    phases: dict[str, list[float]] = {}
    requests = record.get("requests")
    for request in requests if isinstance(requests, list) else []:
        if isinstance(request, dict) and _is_number(request.get("cached_tokens")):
            phases.setdefault(str(request.get("phase")), []).append(request["cached_tokens"])
    return phases


def _leaves(record: Record, before: str = "") -> Iterator[tuple[str, Any, Reach | None]]:
    """Dotted name, value, and the interval that stands beside it; a summary with its median is one leaf."""
    for key, value in record.items():
        if key in _NO_NUMBERS or key.endswith("_interval"):
            continue
        if isinstance(value, dict) and "p50" not in value:
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value, _interval(record.get(f"{key}_interval"))


def _interval(value: object) -> Reach | None:
    if not isinstance(value, dict) or not (_is_number(value.get("low")) and _is_number(value.get("high"))):
        return None
    confidence = value.get("confidence")
    what = f"{confidence:.4g} interval" if _is_number(confidence) else "interval"
    return Reach(value["low"], value["high"], what)


def _range(summary: dict[str, Any]) -> Reach | None:
    low, high = summary.get("min"), summary.get("max")
    if not (_is_number(low) and _is_number(high)):
        return None
    return Reach(low, high, f"range of {summary.get('count')}")


def _words(name: str) -> str:
    """`cache_metrics_delta.phases.cold.hits_tokens` is called "counters, cold, hits"."""
    name = name.replace("cache_metrics_delta.phases.", "counters.").replace("cache_metrics_delta.", "counters.")
    return name.removesuffix("_s").replace("_", " ").replace(".", ", ")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
