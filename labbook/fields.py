"""The fields of a cold and warm record. A number that is missing is null, and `absent` says why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from statistics import mean, median
from typing import Any

from labbook.counters import CounterWatch
from labbook.prompts import first_difference, sha256
from labbook.record import RECORD_VERSION, Record, environment_stamp, now_iso
from labbook.run import Plan, Run, Sent
from labbook.signals import CounterDelta, Signal
from labbook.verdict import Verdict

LAB = "prefix-cache"
_ENGINE_NAMES = {"llamacpp": "llama-server"}


def run_record(run: Run, told: Mapping[str, Signal], found: Verdict) -> Record:
    """The record of a measured run: conditions, times in seconds, tokens, signals, verdict."""
    times, plan = run.times, run.plan
    record: Record = {
        "version": RECORD_VERSION,
        "lab": LAB,
        "experiment": "cold_warm",
        "label": plan.label,
        "engine": engine_name(plan, run.watch),
        "engine_version": run.engine_version,
        "model": run.model,
        "base_url": run.base_url,
        "prefix_source": plan.source,
        "prefix_chars": len(plan.shared_text),
        "prompt_tokens": run.cold.prompt_tokens,
        "shared_prefix_tokens": run.shared_tokens,
        "shared_prefix_source": run.shared_tokens_source,
        "page_tokens": run.watch.page_tokens,
        "timed": times.timed,
        "cold_s": rounded_s(times.cold_s),
        "warm_s": _spread(times.warm_s),
        "warm_over_cold": round(median(times.warm_s) / times.cold_s, 4),
        "control_s": rounded_s(times.control_s),
        "warm_up_s": rounded_s(run.warm_up.ttft_s or run.warm_up.total_s),
        "server_timings_sample": _timings(run),
        "cache_metrics_delta": _counter_deltas(run),
        "failed": len(run.failures),
        "first_error": run.failures[0] if run.failures else None,
        "requests": [_request(sent, run.sent[0].body) for sent in run.sent],
        "questions": plan.questions,
        "seed": plan.seed,
        "nonce": run.nonce,
        "control_nonce": run.control_nonce,
        "prompt_sha256": sha256(plan.shared_text.encode("utf-8", errors="replace")),
        "dropped_fields": list(run.dropped_fields),
        "signals": {name: signal.as_dict() for name, signal in told.items()},
        "verdict": found.word,
        "verdict_reason": found.reason,
        "environment": environment_stamp(),
        "recorded_at": now_iso(),
    }
    record["absent"] = _reasons(record, run)
    return record


def engine_name(plan: Plan, watch: CounterWatch) -> str | None:
    """The engine as it was given, else as its counters are named."""
    return plan.engine or _ENGINE_NAMES.get(watch.engine or "", watch.engine)


def rounded_s(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _spread(seconds: tuple[float, ...]) -> dict[str, Any]:
    return {
        "count": len(seconds),
        "p50": rounded_s(median(seconds)),
        "mean": rounded_s(mean(seconds)),
        "min": rounded_s(min(seconds)),
        "max": rounded_s(max(seconds)),
    }


def _request(sent: Sent, cold_body: bytes) -> dict[str, Any]:
    told = {
        "phase": sent.phase,
        "error": sent.error,
        "body_sha256": sha256(sent.body),
        "differs_from_cold_at_byte": first_difference(cold_body, sent.body),
    }
    if sent.answer is None:
        return told
    answer = sent.answer
    return told | {
        "ttft_s": rounded_s(answer.ttft_s),
        "total_s": rounded_s(answer.total_s),
        "streamed": answer.streamed,
        "first_field": answer.first_field,
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "cached_tokens": answer.cached_tokens,
        "absent": answer.why,
    }


def _timings(run: Run) -> dict[str, Any] | None:
    """llama-server's own times of the cold and of one warm request."""
    warm = next((answer.timings for answer in run.warm if answer.timings), None)
    if warm is None and run.cold.timings is None:
        return None
    return {"cold": _plain(run.cold.timings), "warm": _plain(warm)}


def _plain(timings: dict[str, Any] | None) -> dict[str, Any] | None:
    """The timings with null for whatever is no finite number or text."""
    if timings is None:
        return None
    return {name: value if _is_plain(value) else None for name, value in timings.items()}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _counter_deltas(run: Run) -> dict[str, Any] | None:
    """Tokens that the counters gained while the cold and the warm requests ran, and in each phase."""
    cold, warm = run.watch.delta("cold"), run.watch.delta("warm")
    if cold is None or warm is None or warm.hits is None:
        return None
    phases = {name: delta for name in ("cold", "warm", "control") if (delta := run.watch.delta(name))}
    return {
        "hits_tokens": _plus(cold.hits, warm.hits),
        "queries_tokens": _plus(cold.queries, warm.queries),
        "names": run.watch.names,
        "phases": {name: _delta(delta) for name, delta in phases.items()},
    }


def _delta(delta: CounterDelta) -> dict[str, Any]:
    return {f"{name}_tokens": value for name, value in asdict(delta).items()}


def _plus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _reasons(record: Record, run: Run) -> dict[str, str]:
    reasons = {
        "engine": "not given with --engine, and no counter names it",
        "engine_version": "not given with --engine-version, and /version does not tell",
        "prompt_tokens": run.cold.why.get("prompt_tokens", "the server did not tell"),
        "shared_prefix_tokens": run.shared_tokens_source,
        "page_tokens": "the metrics page does not tell",
        "control_s": "the control request failed",
        "server_timings_sample": "only servers with llama-server's timings object tell",
        "cache_metrics_delta": run.watch.why or "the counters were not read around every phase",
    }
    return {name: why for name, why in reasons.items() if record[name] is None} | _missing_timings(record)


def _missing_timings(record: Record) -> dict[str, str]:
    sample = record["server_timings_sample"] or {}
    return {
        f"server_timings_sample.{phase}.{name}": "the server told no finite number"
        for phase, timings in sample.items()
        for name, value in (timings or {}).items()
        if value is None
    }
