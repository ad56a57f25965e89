"""What an answer tells, streamed or whole: counts of tokens, cached ones among them, and when its first token came."""

from __future__ import annotations

from typing import Any

from labbook.answer import error_text, first_token_field, token_counts
from labbook.connection import read_json
from labbook.sse import EventReader
from labbook.tap.exchange import Exchange, header
from labbook.tap.readable import TimedBytes


def told(exchange: Exchange, chunks: TimedBytes) -> dict[str, Any]:
    """Fields of the tap's entry; a number that is missing is None, and `absent` says why."""
    is_stream = "event-stream" in (header(exchange.answer_headers, "content-type") or "")
    payloads = _events(chunks) if is_stream else _whole(chunks)
    last: dict[str, Any] = {}
    first_token_s = None
    for at_s, payload in payloads:
        last |= {name: payload[name] for name in ("usage", "timings") if isinstance(payload.get(name), dict)}
        if is_stream and first_token_s is None and first_token_field(payload):
            first_token_s = at_s - exchange.started_s
    counts = token_counts(last.get("usage"), last.get("timings"))
    absent = dict(counts.why)
    if first_token_s is None:
        absent["first_token_s"] = "no event of the stream carried text" if is_stream else "the answer was not streamed"
    return {
        "streamed": is_stream,
        "first_token_s": None if first_token_s is None else round(first_token_s, 6),
        "prompt_tokens": counts.prompt_tokens,
        "cached_tokens": counts.cached_tokens,
        "cached_source": counts.cached_source,
        "completion_tokens": counts.completion_tokens,
        "answer_error": next((error for _, payload in payloads if (error := error_text(payload))), None),
        "absent": absent,
    }


def _events(chunks: TimedBytes) -> list[tuple[float, dict[str, Any]]]:
    reader, found, at_s = EventReader(), [], 0.0
    for at_s, data in chunks:
        found += [(at_s, event.data) for event in reader.feed(data)]
    found += [(at_s, event.data) for event in reader.finish()]
    return [(at_s, payload) for at_s, data in found if (payload := _object(data)) is not None]


def _whole(chunks: TimedBytes) -> list[tuple[float, dict[str, Any]]]:
    payload = _object(b"".join(data for _, data in chunks).decode("utf-8", errors="replace"))
    return [] if payload is None else [(chunks[-1][0], payload)]


def _object(data: str) -> dict[str, Any] | None:
    try:
        payload = read_json(data)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
