"""The record of a growth run: two lines with their intervals, the three signals, and every single number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labbook import signals, verdict
from labbook.fields import conditions, counter_deltas, requests, rounded_s, why_conditions
from labbook.growth_fit import METHOD, Fit, clock_signal, fit, points_by_length
from labbook.growth_run import GrowthRun
from labbook.identity import ServerFacts
from labbook.record import Record
from labbook.run import queried_tokens
from labbook.signals import Signal
from labbook.verdict import Verdict

EXPERIMENT = "growth"


def growth_record(run: GrowthRun, facts: ServerFacts, dropped_fields: Sequence[str] = ()) -> Record:
    """Lengths are prompt tokens, or words of the prefix where the server does not count tokens (`per` says which)."""
    by_length = points_by_length(run)
    lines = fit(list(by_length.values()), run.plan.seed)
    told = {"clock": clock_signal(lines, run.per), "cached_tokens": _cached_tokens(run), "counters": _counters(run)}
    found = _verdict(run, told)
    record = conditions(
        run.plan, run.model, run.base_url, run.watch, facts, run.answers("cold")[0].system_fingerprint
    ) | {
        "experiment": EXPERIMENT,
        "question": "does the time grow with the length of a prompt that is there already?",
        "timed": run.timed,
        "per": run.per,
        "answer_tokens": run.plan.answer_tokens,
        "prompt_tokens": max((answer.prompt_tokens or 0 for answer in run.answers("cold")), default=0) or None,
        "lines": {"cold": _line(lines.cold), "warm": _line(lines.warm), "method": METHOD},
        "slope_ratio": lines.slope_ratio.as_dict() if lines.slope_ratio else None,
        "lengths": _lengths(run),
        "warm_up_s": rounded_s(run.warm_up.ttft_s or run.warm_up.total_s),
        "cache_metrics_delta": counter_deltas(run.watch, ("cold", "warm")),
        "failed": len(run.failures),
        "first_error": run.failures[0] if run.failures else None,
        "requests": [{"words": run.words[request["group"] - 1], **request} for request in requests(run.sent)],
        "dropped_fields": list(dropped_fields),
        "signals": {name: signal.as_dict() for name, signal in told.items()},
        "verdict": found.word,
        "verdict_reason": found.reason,
    }
    reasons = {
        "prompt_tokens": run.answers("cold")[0].why.get("prompt_tokens", "the server did not tell"),
        "slope_ratio": told["clock"].why,
        "cache_metrics_delta": run.watch.why or "the counters were not read around every request",
    }
    absent = {name: why for name, why in reasons.items() if record[name] is None}
    record["absent"] = absent | why_conditions(record, facts)
    return record


def _line(fitted: Fit) -> dict[str, Any]:
    return {"fixed_ms": fitted.fixed_ms.as_dict(), "slope_ms": fitted.slope_ms.as_dict()}


def _lengths(run: GrowthRun) -> list[dict[str, Any]]:
    """One entry for each pair, by length: what the figure draws."""
    return [
        {
            "words": words,
            "cold_length": run.length(words, cold),
            "cold_s": rounded_s(run.seconds(cold)),
            "warm_length": run.length(words, warm),
            "warm_s": rounded_s(run.seconds(warm)),
        }
        for words, cold, warm in sorted(run.pairs(), key=lambda pair: pair[0])
    ]


def _cached_tokens(run: GrowthRun) -> Signal:
    warm = run.answers("warm")
    return signals.cached_tokens(
        max(_cold_cached(run), default=None),
        [answer.cached_tokens for answer in warm],
        None,
        missing_why=next((answer.why["cached_tokens"] for answer in warm if "cached_tokens" in answer.why), ""),
        by_timings=[answer.timings_cached_tokens for answer in warm],
    )


def _cold_cached(run: GrowthRun) -> list[int]:
    return [answer.cached_tokens for answer in run.answers("cold") if answer.cached_tokens is not None]


def _counters(run: GrowthRun) -> Signal:
    cold, warm = run.watch.delta("cold"), run.watch.delta("warm")
    if cold is None or warm is None:
        return signals.absent("tokens", run.watch.why or "the counters were not read around every request")
    num_warm, num_cold = len(run.answers("warm")), len(run.answers("cold"))
    return signals.counters(cold, warm, None, num_warm=num_warm, num_cold=num_cold, missing_why=run.watch.why)


def _verdict(run: GrowthRun, told: dict[str, Signal]) -> Verdict:
    # Every cold prompt is a changed prefix to the others: what the least of them reused is the template's head.
    most, least = max(_cold_cached(run), default=None), min(_cold_cached(run), default=None)
    source = run.answers("cold")[0].cached_source or "usage"
    contamination = (
        ("the server restarted during the measurement" if run.watch.has_restarted() else None)
        or verdict.contamination_by_traffic(run.watch.steps(), queried_tokens(list(run.sent)), len(run.sent))
        or verdict.contamination_by_tokens(most, least, source)
    )
    return verdict.decide(told, contamination=contamination)
