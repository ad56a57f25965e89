"""What a run says: the three signals of a phase, whether the run was contaminated, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from labbook import signals, verdict
from labbook.answer import Answer
from labbook.engines import how_to_ask
from labbook.grouped_run import Run
from labbook.run import queried_tokens
from labbook.signals import CounterDelta, Signal
from labbook.statistics import LEAST_GROUPS
from labbook.verdict import Verdict


def conclude(run: Run) -> tuple[dict[str, Signal], Verdict]:
    """The three signals of the phase that the experiment judges, and the verdict from them."""
    experiment = run.experiment
    told = signals_of(run, experiment.judged, experiment.without)
    found = _decide(run, told)
    if experiment.needs is None or found.word == "contaminated":
        return told, found
    needed = _decide(run, signals_of(run, experiment.needs, experiment.without))
    if needed.word == "reused":
        return told, found
    nothing = f"nothing to tell: the {experiment.needs} requests were not seen to reuse anything ({needed.reason})"
    return told, Verdict("inconclusive", nothing)


def signals_of(run: Run, judged: str, without: Sequence[str]) -> dict[str, Signal]:
    """Clock, cached tokens and counters of one phase, against those that reuse nothing but the template's head."""
    return {
        "clock": _clock(run, judged, without),
        "cached_tokens": _cached_tokens(run, judged),
        "counters": _counters(run, judged),
    }


def is_settled(run: Run) -> bool:
    """True when no further group is needed, for what is judged and for what that needs. See repeats.py."""
    told, found = conclude(run)
    if found.word == "contaminated":
        return True
    needed = run.experiment.needs
    if needed and not _is_settled(run, signals_of(run, needed, run.experiment.without)):
        return False
    return _is_settled(run, told)


def _is_settled(run: Run, told: dict[str, Signal]) -> bool:
    clock, has_groups = told["clock"], len(run.nonces) >= LEAST_GROUPS
    counts = {told[name].supports for name in ("cached_tokens", "counters")} - {None}
    if clock.supports is not None:
        return has_groups or counts == {clock.supports}
    if not clock.details.get("more_groups_may_tell", False):
        return True
    return has_groups and len(counts) == 1  # the counts tell; the clock had its chance to contradict them


def needs_short_requests(run: Run) -> bool:
    """True when the clock is about to say that nothing was reused, and nobody knows yet what a short prompt takes."""
    if run.answers("short"):
        return False
    phases = [phase for phase in (run.experiment.judged, run.experiment.needs) if phase]
    return any(_clock(run, phase, run.experiment.without).supports == "not_reused" for phase in phases)


def _decide(run: Run, told: dict[str, Signal]) -> Verdict:
    too_short = verdict.below_one_page(
        run.shared_tokens, run.watch.page_tokens, is_estimate=run.shared_tokens_source.startswith("estimated")
    )
    contamination = _contamination(run, is_clock_reused=told["clock"].supports == "reused")
    return verdict.decide(told, contamination=contamination, too_short=too_short)


def _clock(run: Run, judged: str, without: Sequence[str]) -> Signal:
    return signals.clock(
        run.timed_groups(judged, without),
        timed=run.timed,
        judged=judged,
        shared_share=run.shared_share,
        short_s=run.seconds("short"),
        confidence=run.repeats.confidence,
        seed=run.plan.seed,
    )


def _cached_tokens(run: Run, judged: str) -> Signal:
    answers = run.answers(judged)
    missing = next((answer.why["cached_tokens"] for answer in answers if "cached_tokens" in answer.why), "")
    if missing.startswith("usage holds"):
        missing = f"{missing} {how_to_ask('cached_tokens')}"
    return signals.cached_tokens(
        _most(run.answers("cold")),
        [answer.cached_tokens for answer in answers],
        _most(run.answers(_head_phase(run))),
        prompt_tokens=run.cold.prompt_tokens,
        missing_why=missing,
        phase=judged,
        by_timings=[answer.timings_cached_tokens for answer in answers],
    )


def _counters(run: Run, judged: str) -> Signal:
    head_phase = _head_phase(run)
    cold, asked = run.watch.delta("cold"), run.watch.delta(judged)
    if cold is None or asked is None:
        return signals.absent("tokens", run.watch.why or f"the counters were not read around the {judged} requests")
    return signals.counters(
        cold,
        asked,
        run.watch.delta(head_phase),
        num_warm=len(run.answers(judged)),
        num_cold=len(run.answers("cold")),
        num_control=len(run.answers(head_phase)),
        missing_why=run.watch.why,
        phase=judged,
    )


def _contamination(run: Run, *, is_clock_reused: bool) -> str | None:
    if run.watch.has_restarted():
        return "the server restarted during the measurement"
    changed = run.experiment.changed
    cold, control = _most(run.answers("cold")), _most(run.answers(changed))
    return (
        verdict.contamination_by_traffic(run.watch.steps(), queried_tokens(list(run.sent)), len(run.sent))
        or verdict.contamination_by_loss(run.watch.steps(), run.watch.sent_tokens)
        or verdict.contamination_by_tokens(cold, control, run.cold.cached_source or "usage")
        or verdict.contamination_by_tokens(_hits_each(run, "cold"), _hits_each(run, changed), "counters")
        or (None if is_clock_reused else verdict.contamination_everywhere(cold, control, run.cold.prompt_tokens))
    )


def _head_phase(run: Run) -> str:
    """The phase whose reuse is the template's head. A changed prefix shows it, unless it is what is to be judged."""
    experiment = run.experiment
    return "cold" if experiment.judged == experiment.changed else experiment.changed


def _most(answers: Sequence[Answer]) -> int | None:
    return max((answer.cached_tokens for answer in answers if answer.cached_tokens is not None), default=None)


def _hits_each(run: Run, phase: str) -> float | None:
    delta: CounterDelta | None = run.watch.delta(phase)
    count = len(run.answers(phase))
    return None if delta is None or delta.hits is None or not count else delta.hits / count
