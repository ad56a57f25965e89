"""The fields of a record that is measured in groups. A number that is missing is null, and `absent` says why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean, median
from typing import Any

from labbook.answer import Answer
from labbook.counters import CounterWatch
from labbook.grouped_run import Run
from labbook.identity import ServerFacts, build_of
from labbook.prompts import first_difference, sha256
from labbook.record import RECORD_VERSION, Record, environment_stamp, now_iso
from labbook.run import Plan, Sent
from labbook.signals import CounterDelta, Signal
from labbook.statistics import INTERVAL_METHOD, ratio_interval
from labbook.verdict import Verdict

LAB = "prefix-cache"
_ENGINE_NAMES = {"llamacpp": "llama-server"}


def run_record(
    run: Run, facts: ServerFacts, told: Mapping[str, Signal], found: Verdict, dropped_fields: Sequence[str] = ()
) -> Record:
    """The record of a run: conditions, times in seconds, tokens, signals, verdict, and every single number."""
    record = conditions(run.plan, run.model, run.base_url, run.watch, facts, run.cold.system_fingerprint) | {
        "experiment": run.experiment.name,
        "question": run.experiment.question,
        "prompt_tokens": run.cold.prompt_tokens,
        "shared_prefix_tokens": run.shared_tokens,
        "shared_prefix_source": run.shared_tokens_source,
        "timed": run.timed,
        **_times(run),
        "warm_up_s": rounded_s(run.warm_up.ttft_s or run.warm_up.total_s),
        "warm_up": {"nonce": run.warm_up_nonce, **_answered(run.warm_up)},
        "server_timings_sample": _timings(run),
        "cache_metrics_delta": counter_deltas(run.watch, run.experiment.phases),
        "failed": len(run.failures),
        "first_error": run.failures[0] if run.failures else None,
        "requests": requests(run.sent),
        "questions": run.plan.questions,
        "answer_tokens": run.plan.answer_tokens,
        "groups": len(run.nonces),
        "competitors": len(run.nonces[0].competing),
        "repeat_rule": run.repeats.rule,
        "nonce": run.nonces[0].cold,
        "control_nonce": run.nonces[0].control,
        "nonces": [nonces.as_dict() for nonces in run.nonces],
        "dropped_fields": list(dropped_fields),
        "signals": {name: signal.as_dict() for name, signal in told.items()},
        "verdict": found.word,
        "verdict_reason": found.reason,
    }
    record["absent"] = _reasons(record, run) | why_conditions(record, facts)
    return record


def conditions(
    plan: Plan, model: str, base_url: str, watch: CounterWatch, facts: ServerFacts, fingerprint: str | None
) -> Record:
    """What every record of a measurement says before any number. `fingerprint` is that of an answer."""
    _, version = build_of(fingerprint)
    return {
        "version": RECORD_VERSION,
        "lab": LAB,
        "experiment": None,
        "label": plan.label,
        "engine": engine_name(plan, watch, fingerprint),
        "engine_version": plan.engine_version or facts.version or version,
        "system_fingerprint": fingerprint,
        "model": model,
        **facts.as_dict(),
        "base_url": base_url,
        "prefix_source": plan.source,
        "prefix_chars": len(plan.shared_text),
        "prompt_sha256": sha256(plan.shared_text.encode("utf-8", errors="replace")),
        "page_tokens": watch.page_tokens,
        "seed": plan.seed,
        "environment": environment_stamp(),
        "recorded_at": now_iso(),
    }


def _times(run: Run) -> dict[str, Any]:
    """Medians over the groups. `warm_over_cold` pairs each warm request with the cold one of its group."""
    pairs = run.timed_groups("warm", ("cold",))
    interval = ratio_interval(pairs, run.repeats.confidence, run.plan.seed)
    told = {
        "cold_s": rounded_s(median(run.seconds("cold"))),
        "warm_s": spread(run.seconds("warm")),
        "warm_over_cold": round(interval.value, 4),
        "warm_over_cold_interval": interval.as_dict() | {"method": INTERVAL_METHOD, "groups": len(pairs)},
    }
    for phase in dict.fromkeys(("control", *run.experiment.phases)):
        if phase not in ("cold", "warm"):
            times = run.seconds(phase)
            told[f"{phase}_s"] = rounded_s(median(times)) if times else None
    return told


def engine_name(plan: Plan, watch: CounterWatch, fingerprint: str | None = None) -> str | None:
    """The engine as it was given, else as its counters are named, else as its answers are signed."""
    return plan.engine or _ENGINE_NAMES.get(watch.engine or "", watch.engine) or build_of(fingerprint)[0]


def rounded_s(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    return {
        "count": len(seconds),
        "p50": rounded_s(median(seconds)),
        "mean": rounded_s(mean(seconds)),
        "min": rounded_s(min(seconds)),
        "max": rounded_s(max(seconds)),
    }


def requests(sent: Sequence[Sent]) -> list[dict[str, Any]]:
    """Each request with its phase, group, times and tokens. Bodies are compared with the cold one of their group."""
    cold = {one.group: one.body for one in sent if one.phase == "cold"}
    return [_request(one, cold.get(one.group, one.body)) for one in sent]


def _request(sent: Sent, cold_body: bytes) -> dict[str, Any]:
    told = {
        "phase": sent.phase,
        "group": sent.group,
        "error": sent.error,
        "body_sha256": sha256(sent.body),
        "differs_from_cold_at_byte": first_difference(cold_body, sent.body),
    }
    return told if sent.answer is None else told | _answered(sent.answer)


def _answered(answer: Answer) -> dict[str, Any]:
    return {
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
    warm = next((answer.timings for answer in run.answers("warm") if answer.timings), None)
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


def counter_deltas(watch: CounterWatch, phases: Sequence[str]) -> dict[str, Any] | None:
    """Tokens that the counters gained while the cold and the warm requests ran, and in each phase."""
    cold, warm = watch.delta("cold"), watch.delta("warm")
    if cold is None or warm is None or warm.hits is None:
        return None
    read = {name: delta for name in phases if (delta := watch.delta(name))}
    return {
        "hits_tokens": _plus(cold.hits, warm.hits),
        "queries_tokens": _plus(cold.queries, warm.queries),
        "names": watch.names,
        "phases": {name: _delta(delta) for name, delta in read.items()},
    }


def _delta(delta: CounterDelta) -> dict[str, Any]:
    return {f"{name}_tokens": value for name, value in asdict(delta).items()}


def _plus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def why_conditions(record: Record, facts: ServerFacts) -> dict[str, str]:
    """The reason of every null among the conditions."""
    reasons = {
        "engine": "not given with --engine, and neither a counter nor an answer names it",
        "engine_version": "not given with --engine-version, and neither /version nor /props nor an answer tells",
        "system_fingerprint": "the answers hold no system_fingerprint",
        "page_tokens": "the metrics page does not tell",
        **facts.why,
    }
    return {name: why for name, why in reasons.items() if record[name] is None}


def _reasons(record: Record, run: Run) -> dict[str, str]:
    has_control = "control" in run.experiment.phases
    reasons = {
        "prompt_tokens": run.cold.why.get("prompt_tokens", "the server did not tell"),
        "shared_prefix_tokens": run.shared_tokens_source,
        "control_s": "the control request failed" if has_control else "this experiment has no control of its own",
        "server_timings_sample": "only servers with llama-server's timings object tell",
        "cache_metrics_delta": run.watch.why or "the counters were not read around every phase",
    }
    for phase in run.experiment.phases:
        reasons.setdefault(f"{phase}_s", f"no {phase} request succeeded")
    return {name: why for name, why in reasons.items() if record[name] is None} | _missing_timings(record)


def _missing_timings(record: Record) -> dict[str, str]:
    sample = record["server_timings_sample"] or {}
    return {
        f"server_timings_sample.{phase}.{name}": "the server told no finite number"
        for phase, timings in sample.items()
        for name, value in (timings or {}).items()
        if value is None
    }
