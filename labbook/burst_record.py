"""The record of a burst run: times against a single cold request, tokens from usage and from counters, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from labbook import verdict
from labbook.answer import Answer
from labbook.burst_run import Burst, BurstRun
from labbook.fields import LAB, engine_name, rounded_s
from labbook.prompts import sha256
from labbook.record import RECORD_VERSION, Record, environment_stamp, now_iso
from labbook.run import queried_tokens
from labbook.signals import UNSTEADY_ABOVE

EXPERIMENT = "burst"


def burst_record(run: BurstRun) -> Record:
    """Conditions, the yardstick `cold`, and each burst by its kind. A number that is missing is null, with a reason."""
    plan = run.plan
    cold = _cold(run)
    errors = [error for burst in run.bursts for error in burst.errors]
    record: Record = {
        "version": RECORD_VERSION,
        "lab": LAB,
        "experiment": EXPERIMENT,
        "label": plan.label,
        "engine": engine_name(plan, run.watch, run.cold[0].system_fingerprint),
        "engine_version": plan.engine_version or run.facts.version,
        "model": run.model,
        **run.facts.as_dict(),
        "base_url": run.base_url,
        "prefix_source": plan.source,
        "prefix_chars": len(plan.shared_text),
        "prompt_tokens": run.cold[0].prompt_tokens,
        "page_tokens": run.watch.page_tokens,
        "burst_requests": run.num_requests,
        "new_tokens": run.new_tokens,
        "cold": cold,
        "bursts": {burst.kind: _burst(burst, run, cold) for burst in run.bursts},
        "counter_names": run.watch.names,
        "failed": len(errors),
        "first_error": errors[0] if errors else None,
        "warnings": _warnings(run),
        "seed": plan.seed,
        "nonces": run.nonces,
        "prompt_sha256": sha256(plan.shared_text.encode("utf-8", errors="replace")),
        "dropped_fields": list(run.dropped_fields),
        "environment": environment_stamp(),
        "recorded_at": now_iso(),
    }
    reasons = {
        "engine": "not given with --engine, and no counter names it",
        "engine_version": "not given with --engine-version, and /version does not tell",
        "prompt_tokens": run.cold[0].why.get("prompt_tokens", "the server did not tell"),
        "page_tokens": "the metrics page does not tell",
        **run.facts.why,
    }
    record["absent"] = {name: why for name, why in reasons.items() if record[name] is None}
    return record


def _cold(run: BurstRun) -> dict[str, Any]:
    """The yardstick: means over the single cold requests. Tokens are those of one of them."""
    by_counters, why = _computed_by_counters(run, "cold")
    by_usage, why_usage = _computed_by_usage(run.cold)
    told = {
        "first_token_s": _mean([answer.ttft_s for answer in run.cold]),
        "completion_s": _mean([answer.total_s for answer in run.cold]),
        "computed_tokens": None if by_usage is None else by_usage / len(run.cold),
        "computed_tokens_by_counters": None if by_counters is None else by_counters / len(run.cold),
        "requests": [_request(answer, None, 0.0) for answer in run.cold],
    }
    return _with_reasons(
        told,
        {
            "first_token_s": run.cold[0].why.get("ttft_s", "a single cold request showed no first token"),
            "computed_tokens": why_usage,
            "computed_tokens_by_counters": why,
        },
    )


def _burst(burst: Burst, run: BurstRun, cold: dict[str, Any]) -> dict[str, Any]:
    begun_s = min((shot.at_s for shot in burst.shots), default=0.0)
    answers = burst.answers
    first_s, end_s = [answer.ttft_s for answer in answers], [answer.total_s for answer in answers]
    by_usage, why_usage = _computed_by_usage(answers) if not burst.errors else (None, "a request failed")
    by_counters, why_counters = _computed_by_counters(run, burst.kind)
    told: dict[str, Any] = {
        "first_token_mean_s": _mean(first_s),
        "first_token_slowest_s": _slowest(first_s),
        "completion_mean_s": _mean(end_s),
        "completion_slowest_s": _slowest(end_s),
        "prompt_tokens": queried_tokens([shot.sent for shot in burst.shots]),
        "computed_tokens": by_usage,
        "computed_tokens_by_counters": by_counters,
    }
    told |= {
        "first_token_mean_over_cold": _over(told["first_token_mean_s"], cold["first_token_s"]),
        "completion_mean_over_cold": _over(told["completion_mean_s"], cold["completion_s"]),
        "computed_over_cold": _over(by_usage, cold["computed_tokens"]),
        "computed_over_cold_by_counters": _over(by_counters, cold["computed_tokens_by_counters"]),
        "failed": len(burst.errors),
        "requests": [_request(shot.sent.answer, shot.sent.error, shot.at_s - begun_s) for shot in burst.shots],
    }
    no_time = "no request of this burst succeeded" if not answers else "a request showed no first token"
    reasons = {
        "first_token_mean_s": no_time,
        "first_token_slowest_s": no_time,
        "completion_mean_s": no_time,
        "completion_slowest_s": no_time,
        "prompt_tokens": "a request failed, or the server did not tell",
        "computed_tokens": why_usage,
        "computed_tokens_by_counters": why_counters,
        "first_token_mean_over_cold": "one of the two times is missing",
        "completion_mean_over_cold": no_time,
        "computed_over_cold": why_usage or "tokens of the single cold request are missing",
        "computed_over_cold_by_counters": why_counters or "tokens of the single cold request are missing",
    }
    if burst.why:
        reasons["requests"] = burst.why
    return _with_reasons(told, reasons)


def _with_reasons(told: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    """`absent` holds the reason of every null, and why a request was not sent."""
    return told | {"absent": {name: why for name, why in reasons.items() if told[name] is None or name == "requests"}}


def _request(answer: Answer | None, error: str | None, sent_after_s: float) -> dict[str, Any]:
    """`sent_after_s` counts from the first request of the burst."""
    told: dict[str, Any] = {"sent_after_s": rounded_s(sent_after_s), "error": error}
    if answer is None:
        return told
    return told | {
        "ttft_s": rounded_s(answer.ttft_s),
        "total_s": rounded_s(answer.total_s),
        "prompt_tokens": answer.prompt_tokens,
        "cached_tokens": answer.cached_tokens,
        "completion_tokens": answer.completion_tokens,
        "finish_reason": answer.finish_reason,
        "body_sha256": answer.body_sha256,
        "absent": answer.why,
    }


def _computed_by_usage(answers: Sequence[Answer]) -> tuple[int | None, str]:
    """Prompt tokens less cached ones; None and the reason when one answer does not tell."""
    computed = 0
    for answer in answers:
        if answer.prompt_tokens is None or answer.cached_tokens is None:
            why = answer.why.get("prompt_tokens") or answer.why.get("cached_tokens") or "the server did not tell"
            return None, why
        computed += answer.prompt_tokens - answer.cached_tokens
    return (computed, "") if answers else (None, "no request succeeded")


def _computed_by_counters(run: BurstRun, kind: str) -> tuple[float | None, str]:
    delta = run.watch.delta(kind)
    if delta is None or delta.queries is None or delta.hits is None:
        return None, run.watch.why or "the counters were not read around this burst"
    if not 0 <= delta.hits <= delta.queries:
        return None, f"the counters gained {delta.hits:g} hits and {delta.queries:g} queries, which cannot be"
    if not delta.queries:
        return None, "the counters did not move: the cache is off, or these counters are not in use"
    return delta.queries - delta.hits, ""


def _warnings(run: BurstRun) -> list[str]:
    """What casts doubt on the whole run: a yardstick that was warm, or unsteady; traffic of others."""
    found = []
    for answer in run.cold:
        found.append(verdict.contamination_by_tokens(answer.cached_tokens, None, answer.cached_source or "usage"))
    if run.watch.has_restarted():
        found.append("the server restarted during the measurement")
    sent = [shot.sent for burst in run.bursts for shot in burst.shots]
    known = [answer.prompt_tokens for answer in run.cold]
    in_bursts = queried_tokens(sent)
    in_cold = None if None in known else sum(tokens or 0 for tokens in known)
    total = None if in_bursts is None or in_cold is None else in_bursts + in_cold
    found.append(verdict.contamination_by_traffic(run.watch.steps(), total, len(sent) + len(run.cold)))
    times = [answer.ttft_s or answer.total_s for answer in run.cold]
    if max(times) > UNSTEADY_ABOVE * min(times):
        least_ms, most_ms = min(times) * 1000, max(times) * 1000
        found.append(f"the single cold requests took {least_ms:.0f} and {most_ms:.0f} ms: the machine was busy")
    return [warning for warning in found if warning]


def _mean(seconds: Sequence[float | None]) -> float | None:
    known = _all_known(seconds)
    return rounded_s(mean(known)) if known else None


def _slowest(seconds: Sequence[float | None]) -> float | None:
    known = _all_known(seconds)
    return rounded_s(max(known)) if known else None


def _all_known(values: Sequence[float | None]) -> list[float]:
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _over(value: float | None, yardstick: float | None) -> float | None:
    return None if value is None or not yardstick else round(value / yardstick, 4)
