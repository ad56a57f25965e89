"""What is wrong inside a record: types, impossible numbers, a verdict that no signal supports. Pure functions.

Only fields whose meaning is fixed are judged; a record may hold any others. Those of other labs than the instrument's
own have meanings of their own, and only what every record shares is judged in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeGuard

from labbook.record import RECORD_VERSION, Record
from labbook.verdict import WORDS

LAB = "prefix-cache"
_SIGNALS = ("clock", "cached_tokens", "counters")
_SUPPORTS = (None, "reused", "not_reused")


def faults_of(record: Record) -> list[str]:
    """Every fault as a sentence that names the field and its value; none for a sound record."""
    if record.get("lab", LAB) != LAB:
        return [*_version(record), *_types(record, _OF_EVERY_RECORD)]
    return [
        *_version(record),
        *_types(record, _OF_EVERY_RECORD | _OF_MEASUREMENTS),
        *_spread(record.get("warm_s")),
        *_interval(record.get("warm_over_cold_interval")),
        *_tokens(record),
        *_signals(record.get("signals")),
        *_verdict(record),
    ]


def _version(record: Record) -> Iterator[str]:
    version = record.get("version", RECORD_VERSION)
    if isinstance(version, bool) or not isinstance(version, int):
        yield f"version is {version!r}, where a whole number is meant"
    elif not 1 <= version <= RECORD_VERSION:
        yield f"version {version} is not known here, which reads up to {RECORD_VERSION}: a newer labbook may read it"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_amount(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _is_verdict(value: object) -> bool:
    return value in WORDS


Meanings = dict[str, tuple[Callable[[object], bool], str]]

_OF_EVERY_RECORD: Meanings = {
    **dict.fromkeys(("lab", "experiment", "label"), (_is_text, "a text")),
    "environment": (_is_object, "an object"),
    "recorded_at": (_is_time, "a time such as 2026-11-30T09:00:00+00:00"),
}
_OF_MEASUREMENTS: Meanings = {
    **dict.fromkeys(("engine", "engine_version", "model", "kv_precision"), (_is_text, "a text")),
    **dict.fromkeys(("base_url", "prefix_source", "verdict_reason", "first_error", "timed"), (_is_text, "a text")),
    **dict.fromkeys(("prefix_chars", "questions", "failed"), (_is_count, "a whole number of at least 0")),
    **dict.fromkeys(("prompt_tokens", "shared_prefix_tokens"), (_is_count, "a whole number of at least 0")),
    **dict.fromkeys(("cold_s", "control_s", "warm_up_s"), (_is_amount, "a number of seconds of at least 0")),
    "warm_over_cold": (_is_amount, "a ratio of at least 0"),
    **dict.fromkeys(("signals", "absent", "cache_metrics_delta", "identity"), (_is_object, "an object")),
    "requests": (_is_list, "a list"),
    "verdict": (_is_verdict, f"one of {', '.join(WORDS)}"),
}


def _types(record: Record, meanings: Meanings) -> Iterator[str]:
    for name, (is_meant, what) in meanings.items():
        value = record.get(name)
        if value is not None and not is_meant(value):
            yield f"{name} is {_short(value)}, where {what} or null is meant"


def _spread(spread: object) -> Iterator[str]:
    if spread is None:
        return
    if not isinstance(spread, dict):
        yield f"warm_s is {_short(spread)}, where an object with count, p50, mean, min and max is meant"
        return
    wrong = [name for name in ("p50", "mean", "min", "max") if not _is_amount(spread.get(name))]
    if wrong or not _is_count(spread.get("count")):
        yield f"warm_s has no number of seconds of at least 0 in {', '.join(wrong or ['count'])}"
    elif not spread["min"] <= spread["p50"] <= spread["max"]:
        yield f"warm_s has the median {spread['p50']} outside of {spread['min']} to {spread['max']}"


def _interval(interval: object) -> Iterator[str]:
    if interval is None:
        return
    told = interval if isinstance(interval, dict) else {}
    low, value, high = told.get("low"), told.get("value"), told.get("high")
    if not (_is_amount(low) and _is_amount(value) and _is_amount(high)):
        yield f"warm_over_cold_interval is {_short(interval)}, where an object with low, value and high is meant"
    elif not low <= value <= high:
        yield f"warm_over_cold_interval has the value {value} outside of {low} to {high}"


def _tokens(record: Record) -> Iterator[str]:
    requests = record.get("requests")
    for place, request in enumerate(requests if isinstance(requests, list) else []):
        if not isinstance(request, dict):
            yield f"requests[{place}] is {_short(request)}, where an object is meant"
            continue
        cached, prompt = request.get("cached_tokens"), request.get("prompt_tokens")
        if _is_count(cached) and _is_count(prompt) and cached > prompt:
            yield f"requests[{place}] has {cached} cached of {prompt} prompt tokens, which cannot be"
    delta = record.get("cache_metrics_delta")
    if isinstance(delta, dict):
        hits, queries = delta.get("hits_tokens"), delta.get("queries_tokens")
        if _is_amount(hits) and _is_amount(queries) and hits > queries:
            yield f"cache_metrics_delta has {hits} hits of {queries} queries, which cannot be"


def _signals(signals: object) -> Iterator[str]:
    if not isinstance(signals, dict):
        return
    for name in _SIGNALS:
        signal = signals.get(name)
        if not isinstance(signal, dict):
            yield f"signals.{name} is missing: a signal that is absent has the value null and says why"
            continue
        supports = signal.get("supports")
        if supports not in _SUPPORTS:
            yield f"signals.{name}.supports is {_short(supports)}, where reused, not_reused or null is meant"
        if signal.get("value") is None and not signal.get("why"):
            yield f"signals.{name} is absent and does not say why"
        if signal.get("value") is None and supports is not None:
            yield f"signals.{name} is absent and supports {_short(supports)} all the same"


def _verdict(record: Record) -> Iterator[str]:
    word, signals = record.get("verdict"), record.get("signals")
    if word is None:
        return
    if not record.get("verdict_reason"):
        yield f"the verdict {_short(word)} has no verdict_reason"
    if word not in ("reused", "not_reused") or not isinstance(signals, dict):
        return
    votes = [signal.get("supports") for signal in signals.values() if isinstance(signal, dict)]
    if word not in votes:
        yield f"the verdict is {word}, and no signal supports that"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
