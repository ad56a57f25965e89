"""One form for the evidence about one server: filled in from a record, or blank, for the learner's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labbook.record import Record
from labs.kit.pair import cached_tokens

BLANK = "______"
_WIDTH = 26
_QUESTIONS = (
    "rivals left open",
    "what would change my mind",
)


def evidence_form(record: Record | None = None, *, origin: str = "", started: str = "") -> str:
    """Lines of "name: value". `origin` says what really ran: a server, a double of one, or nothing yet.

    A field that the record does not tell is said to be missing; without a record all are blank.
    """
    rows = [("origin", origin or BLANK), ("started with", started or BLANK)]
    rows += [(name, BLANK if record is None else _shown(value)) for name, value in _fields(record or {})]
    rows += [(name, BLANK) for name in _QUESTIONS]
    return "\n".join(f"{name + ':':<{_WIDTH}} {value}" for name, value in rows)


def counter_gain(record: Record, phase: str = "warm") -> tuple[float | None, float | None]:
    """Hits and queries, in tokens, that the counters gained in a phase; None where they do not tell."""
    gained = ((record.get("cache_metrics_delta") or {}).get("phases") or {}).get(phase) or {}
    return gained.get("hits_tokens"), gained.get("queries_tokens")


def _fields(record: Record) -> list[tuple[str, Any]]:
    told = record.get("requests") is not None
    warm = record.get("warm_s") or {}
    hits, queries = counter_gain(record)
    engine = " ".join(str(record[name]) for name in ("engine", "engine_version") if record.get(name))
    return [
        ("engine and version", engine or None),
        ("model", record.get("model")),
        ("machine", (record.get("environment") or {}).get("device")),
        ("prompt", _tokens(record.get("prompt_tokens"))),
        ("shared by all", _tokens(record.get("shared_prefix_tokens"))),
        ("cold", _ms(record.get("cold_s"))),
        ("warm, median", _ms(warm.get("p50"))),
        ("changed prefix", _ms(record.get("control_s"))),
        ("cached tokens, cold", _counts(cached_tokens(record, "cold")) if told else None),
        ("cached tokens, warm", _counts(cached_tokens(record, "warm")) if told else None),
        ("cached tokens, changed", _counts(cached_tokens(record, "control")) if told else None),
        ("counters, warm phase", None if hits is None else f"{hits:g} hits of {queries:g} tokens"),
        ("verdict", record.get("verdict")),
    ]


def _shown(value: Any) -> str:
    return "not told" if value is None else str(value)


def _tokens(count: int | None) -> str | None:
    return None if count is None else f"{count} tokens"


def _ms(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds * 1000:.0f} ms"


def _counts(counts: Sequence[int | None]) -> str | None:
    return None if not counts or None in counts else ", ".join(map(str, counts))
