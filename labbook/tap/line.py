"""An entry of the tap as one line for a person."""

from __future__ import annotations

from typing import Any

from labbook.output import printable


def as_line(entry: dict[str, Any]) -> str:
    """Such as `#3 POST /v1/completions 200: 96 of 120 tokens shared with #1, 96 of 120 tokens cached, total 200 ms`."""
    status = "no answer" if entry["status"] is None else str(entry["status"])
    parts = [*_prefix(entry["shared"]), *_cached(entry), *_times(entry)]
    line = f"#{entry['number']} {entry['method']} {entry['target']} {status}: {', '.join(parts)}"
    if entry["shared"] and entry["shared"]["diverges"]:
        line += f"; {_divergence(entry['shared'], entry['cause'])}"
    for error in (entry["error"], entry["answer_error"]):
        line += f"; {error}" if error else ""
    return printable(line)


def _prefix(shared: dict[str, Any] | None) -> list[str]:
    if shared is None:
        return []
    return [f"{shared['length']} of {shared['of']} {shared['unit']} shared with #{shared['with']}"]


def _cached(entry: dict[str, Any]) -> list[str]:
    if entry["cached_tokens"] is not None:
        of = "" if entry["prompt_tokens"] is None else f" of {entry['prompt_tokens']}"
        return [f"{entry['cached_tokens']}{of} tokens cached"]
    if entry["prompt_tokens"] is not None:
        return [f"cached tokens not told, {entry['prompt_tokens']} prompt tokens"]
    return ["no usage told: the application asks for none"] if entry["streamed"] else []


def _times(entry: dict[str, Any]) -> list[str]:
    first = [] if entry["first_token_s"] is None else [f"first token {_s(entry['first_token_s'])}"]
    return [*first, f"total {_s(entry['total_s'])}"]


def _divergence(shared: dict[str, Any], cause: str | None) -> str:
    place = f"diverges at {shared['unit'].removesuffix('s')} {shared['length']}"
    return place if cause is None else f"{place}: {cause}"


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
