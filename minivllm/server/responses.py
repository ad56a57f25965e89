"""What every answer reports about itself: OpenAI's `usage` and llama-server's `timings`."""

from __future__ import annotations

from typing import Any

from minivllm.request import RequestMetrics


def usage(metrics: RequestMetrics) -> dict[str, Any]:
    """Tokens of this request alone; `cached_tokens` is 0 on a miss: it was measured (known fault SV-09)."""
    return {
        "prompt_tokens": metrics.prompt_tokens,
        "completion_tokens": metrics.output_tokens,
        "total_tokens": metrics.prompt_tokens + metrics.output_tokens,
        "prompt_tokens_details": {"cached_tokens": metrics.cached_tokens},
    }


def timings(metrics: RequestMetrics) -> dict[str, float | int | None]:
    """Milliseconds and tokens per second; null where nothing was measured or there is nothing to divide by.

    The first token falls out of the prompt's last pass, so the decode rates are over the tokens after it.
    """
    num_decoded = metrics.output_tokens - 1
    return {
        "cache_n": metrics.cached_tokens,
        "prompt_n": metrics.computed_tokens,
        "prompt_ms": _ms(metrics.prefill_s),
        "prompt_per_token_ms": _ms(_ratio(metrics.prefill_s, metrics.computed_tokens)),
        "prompt_per_second": _ratio(metrics.computed_tokens, metrics.prefill_s),
        "predicted_n": metrics.output_tokens,
        "predicted_ms": _ms(metrics.decode_s),
        "predicted_per_token_ms": _ms(_ratio(metrics.decode_s, num_decoded)),
        "predicted_per_second": _ratio(num_decoded, metrics.decode_s),
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _ratio(above: float | None, below: float | None) -> float | None:
    """None when a side is unknown, or zero: no rate can be told from nothing."""
    return above / below if above and below else None
