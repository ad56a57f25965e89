"""What a run says: the three signals, whether it was contaminated, and the verdict."""

from __future__ import annotations

from labbook import signals, verdict
from labbook.run import Run, queried_tokens
from labbook.signals import Signal
from labbook.verdict import Verdict

_HOW_TO_ASK = "(vLLM: --enable-prompt-tokens-details; SGLang: --enable-cache-report)"


def conclude(run: Run) -> tuple[dict[str, Signal], Verdict]:
    """The three signals of a run, and the verdict from them."""
    told = {"clock": _clock(run), "cached_tokens": _cached_tokens(run), "counters": _counters(run)}
    too_short = verdict.below_one_page(
        run.shared_tokens, run.watch.page_tokens, is_estimate=run.shared_tokens_source.startswith("estimated")
    )
    contamination = _contamination(run, is_clock_reused=told["clock"].supports == "reused")
    return told, verdict.decide(told, contamination=contamination, too_short=too_short)


def _clock(run: Run) -> Signal:
    times = run.times
    share = None
    if run.shared_tokens is not None and run.cold.prompt_tokens:
        share = run.shared_tokens / run.cold.prompt_tokens
    return signals.clock(times.cold_s, times.warm_s, times.control_s, timed=times.timed, shared_share=share)


def _cached_tokens(run: Run) -> Signal:
    missing = next((answer.why["cached_tokens"] for answer in run.warm if "cached_tokens" in answer.why), "")
    if missing.startswith("usage holds"):
        missing = f"{missing} {_HOW_TO_ASK}"
    control = run.control.cached_tokens if run.control else None
    return signals.cached_tokens(
        run.cold.cached_tokens,
        [answer.cached_tokens for answer in run.warm],
        control,
        prompt_tokens=run.cold.prompt_tokens,
        missing_why=missing,
    )


def _counters(run: Run) -> Signal:
    cold, warm = run.watch.delta("cold"), run.watch.delta("warm")
    if cold is None or warm is None:
        return signals.absent("tokens", run.watch.why)
    return signals.counters(cold, warm, run.watch.delta("control"), num_warm=len(run.warm), missing_why=run.watch.why)


def _contamination(run: Run, *, is_clock_reused: bool) -> str | None:
    if run.watch.has_restarted():
        return "the server restarted during the measurement"
    control = run.control.cached_tokens if run.control else None
    cold_delta, control_delta = run.watch.delta("cold"), run.watch.delta("control")
    return (
        verdict.contamination_by_traffic(run.watch.steps(), queried_tokens(list(run.sent)), len(run.sent))
        or verdict.contamination_by_tokens(run.cold.cached_tokens, control, run.cold.cached_source or "usage")
        or verdict.contamination_by_tokens(
            cold_delta.hits if cold_delta else None, control_delta.hits if control_delta else None, "counters"
        )
        or (
            None
            if is_clock_reused
            else verdict.contamination_everywhere(run.cold.cached_tokens, control, run.cold.prompt_tokens)
        )
    )
