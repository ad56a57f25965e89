"""What a chat answer says about itself: text or not, usage, cached tokens, llama-server's timings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MAX_COUNT = 2**53  # beyond, a number in JSON is not exact, and no prompt is that long
# A delta in one of these fields is a generated token. The role alone is none: it comes before any computing.
_TOKEN_FIELDS = ("content", "reasoning_content", "reasoning", "tool_calls", "refusal")


@dataclass(frozen=True)
class Answer:
    """One timed request. Seconds from sending the request; None where the server did not tell, `why` says what."""

    ttft_s: float | None
    total_s: float
    first_field: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cached_source: str | None
    timings: dict[str, Any] | None
    finish_reason: str | None
    streamed: bool
    body_sha256: str
    why: dict[str, str]
    system_fingerprint: str | None = None  # which build answered, in words of its own

    @property
    def timings_cached_tokens(self) -> int | None:
        """What llama-server's `timings` tell of reuse, whatever `usage` says."""
        return _whole_number(self.timings, "cache_n")

    @property
    def timings_computed_tokens(self) -> int | None:
        return _whole_number(self.timings, "prompt_n")


@dataclass(frozen=True)
class TokenCounts:
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cached_source: str | None
    why: dict[str, str]


def first_token_field(chunk: dict[str, Any]) -> str | None:
    """Which field of this chunk carries generated text, if any: "content", "reasoning", ..."""
    for choice in _choices(chunk):
        delta = choice.get("delta") or choice.get("message") or {}
        for name in _TOKEN_FIELDS:
            if isinstance(delta, dict) and delta.get(name):
                return name
        if isinstance(choice.get("text"), str) and choice["text"]:
            return "text"
    return None


def finish_reason(chunk: dict[str, Any]) -> str | None:
    for choice in _choices(chunk):
        if isinstance(choice.get("finish_reason"), str):
            return str(choice["finish_reason"])
    return None


def error_text(payload: object) -> str | None:
    """The message of an error object in any of the usual shapes, or None when the payload is not an error."""
    if not isinstance(payload, dict):
        return None
    error = payload.get("error") or (payload if payload.get("object") == "error" else None)
    if error is None and "choices" not in payload:
        error = payload.get("detail")
    if isinstance(error, dict):
        return str(error.get("message") or error.get("type") or error)
    return str(error) if error else None


def token_counts(usage: object, timings: object) -> TokenCounts:
    """Counts from `usage`, with llama-server's `timings.cache_n` where usage does not tell; nonsense is None."""
    why: dict[str, str] = {}
    usage = usage if isinstance(usage, dict) else None
    if usage is None:
        why["prompt_tokens"] = "the server sent no usage object"
    prompt = _whole_number(usage, "prompt_tokens")
    if usage is not None and prompt is None:
        why["prompt_tokens"] = _no_number("usage", usage, "prompt_tokens")
    completion = _whole_number(usage, "completion_tokens")
    if completion is None:
        no_usage = "the server sent no usage object"
        why["completion_tokens"] = no_usage if usage is None else _no_number("usage", usage, "completion_tokens")
    cached, source = _cached(usage, timings, why)
    if cached is not None and prompt is not None and cached > prompt:
        why["cached_tokens"] = f"the server says {cached} cached of {prompt} prompt tokens, which cannot be"
        cached, source = None, None
    return TokenCounts(prompt, completion, cached, source, why)


def _cached(usage: dict[str, Any] | None, timings: object, why: dict[str, str]) -> tuple[int | None, str | None]:
    details = (usage or {}).get("prompt_tokens_details")
    cached = _whole_number(details, "cached_tokens")
    if cached is not None:
        return cached, "usage.prompt_tokens_details.cached_tokens"
    from_timings = _whole_number(timings, "cache_n")
    if from_timings is not None:
        return from_timings, "timings.cache_n"
    if usage is None:
        why["cached_tokens"] = "the server sent no usage object"
    elif isinstance(details, dict):
        why["cached_tokens"] = _no_number("usage.prompt_tokens_details", details, "cached_tokens")
    else:
        why["cached_tokens"] = "usage holds no prompt_tokens_details"
    return None, None


def _no_number(where: str, holder: dict[str, Any], name: str) -> str:
    return f"{where} holds a {name} that is no number of tokens" if name in holder else f"{where} holds no {name}"


def _whole_number(holder: object, name: str) -> int | None:
    value = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_COUNT:
        return None
    return int(value) if value == int(value) else None


def _choices(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    choices = chunk.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
