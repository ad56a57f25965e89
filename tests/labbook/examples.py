"""One cold and warm record as the instrument writes it, shortened; tests put other values over it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_REQUEST = {"error": None, "total_s": 0.5, "streamed": True, "prompt_tokens": 616}
_RECORD: dict[str, Any] = {
    "version": 1,
    "lab": "prefix-cache",
    "experiment": "cold_warm",
    "label": "on",
    "engine": "lab",
    "engine_version": "1.0",
    "model": "m1",
    "identity": {"page_size": "16", "dtype": "float32"},
    "kv_precision": "float32",
    "base_url": "http://127.0.0.1:8000/v1",
    "prefix_source": "synthetic, 600 words, seed 0",
    "prefix_chars": 3306,
    "prompt_tokens": 616,
    "shared_prefix_tokens": 600,
    "timed": "time to first token",
    "cold_s": 4.0,
    "warm_s": {"count": 3, "p50": 0.2, "mean": 0.2, "min": 0.1, "max": 0.3},
    "warm_over_cold": 0.05,
    "control_s": 4.2,
    "warm_up_s": 5.0,
    "cache_metrics_delta": {"hits_tokens": 1776, "queries_tokens": 2464},
    "failed": 0,
    "first_error": None,
    "requests": [
        {"phase": "cold", "ttft_s": 4.0, "cached_tokens": 0, **_REQUEST},
        *({"phase": "warm", "ttft_s": seconds, "cached_tokens": 592, **_REQUEST} for seconds in (0.1, 0.2, 0.3)),
        {"phase": "control", "ttft_s": 4.2, "cached_tokens": 0, **_REQUEST},
    ],
    "questions": 3,
    "prompt_sha256": "ab" * 32,
    "signals": {
        name: {"value": 0.05, "unit": unit, "supports": "reused", "why": "told", "details": {}}
        for name, unit in (("clock", "warm / cold"), ("cached_tokens", "tokens"), ("counters", "tokens"))
    },
    "verdict": "reused",
    "verdict_reason": "clock, cached tokens and counters agree",
    "environment": {"device": "Linux x86_64, 2 CPU cores"},
    "recorded_at": "2026-11-30T09:00:00+00:00",
    "absent": {},
}


def cold_warm(**values: Any) -> dict[str, Any]:
    return deepcopy(_RECORD) | values
