"""Three signals of reuse, side by side: the clock, `cached_tokens`, the counters. Pure functions over numbers.

Each signal may be absent, or present and unable to tell; both are said in words. None of them is averaged with another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from labbook.statistics import CONFIDENCE, Interval, TimedGroup, ratio_interval

Support = Literal["reused", "not_reused"]

# Tokens of a nonce that may by chance be equal to those of an earlier one.
NONCE_SLACK_TOKENS = 8
# What a template puts before the first word of any prompt, when no control request has shown it.
TEMPLATE_HEAD_TOKENS = 24
# Below this, scheduling and the network are as long as the computing that a cache saves.
CLOCK_FLOOR_S = 0.05
CLOCK_GAIN_S = 0.02
# A prefix that is reused takes at least a third off: of what is measured here, half or more is shared. An interval
# below supports reuse, one above excludes it; one that holds the bound tells nothing.
RATIO_BOUND = 2 / 3
# An interval wholly between the bound and this is neither: some time is saved.
SOME_IS_SAVED_BELOW = 0.9
# Two requests that both compute everything; on a busy machine they differ by more.
UNSTEADY_ABOVE = 1.5
MIN_SHARED_SHARE = 0.5


@dataclass(frozen=True)
class Signal:
    """`value` None means absent. `supports` None means that it cannot tell. `why` explains either, always."""

    value: float | None
    unit: str
    supports: Support | None
    why: str
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def absent(unit: str, why: str) -> Signal:
    return Signal(None, unit, None, why)


def clock(
    groups: Sequence[TimedGroup],
    *,
    timed: str = "time to first token",
    judged: str = "warm",
    shared_share: float | None = None,
    short_s: Sequence[float] = (),
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Signal:
    """Compare judged times with those of requests that cannot reuse, group by group.

    `shared_share` is the part of the prompt that could be reused: where it is small, equal times say nothing. Nor do
    they where `short_s`, the times of short prompts, are about as long: then the time is not spent on the prompt.
    `details["more_groups_may_tell"]` is True where only the noise keeps the clock from telling.
    """
    unit = f"{judged} / without reuse"
    if not groups:
        return absent(unit, f"no {judged} request succeeded beside one without reuse")
    interval = ratio_interval(groups, confidence, seed)
    without_s = median([seconds for group in groups for seconds in group.without_s])
    judged_s = median([seconds for group in groups for seconds in group.judged_s])
    supports, doubt, more_may_tell = _clock_tells(interval, judged_s, without_s, shared_share, short_s)
    details = {
        "timed": timed,
        "yardstick_s": without_s,
        f"{judged}_p50_s": judged_s,
        "short_p50_s": median(short_s) if short_s else None,
        "interval": interval.as_dict(),
        "groups": len(groups),
        "more_groups_may_tell": more_may_tell,
    }
    why = (
        f"{timed} {_ms(judged_s)} {judged} against {_ms(without_s)} without reuse (medians); ratio "
        f"{interval.value:.3f}, {interval.low:.3f} to {interval.high:.3f} {interval.held} from "
        f"{len(groups)} group{'s' if len(groups) > 1 else ''}"
    )
    return Signal(interval.value, unit, supports, why + doubt, details)


def _clock_tells(
    interval: Interval, judged_s: float, without_s: float, shared_share: float | None, short_s: Sequence[float]
) -> tuple[Support | None, str, bool]:
    """What times support, the doubt that keeps them from it, and whether more groups could remove it."""
    if interval.high < RATIO_BOUND:
        if without_s - judged_s < CLOCK_GAIN_S:
            return None, ": a few milliseconds are no evidence, use a longer prefix", False
        return "reused", "", False
    if without_s < CLOCK_FLOOR_S:
        return None, ": too short for a clock to tell, use a longer prefix", False
    if shared_share is not None and shared_share < MIN_SHARED_SHARE:
        return None, f": only {shared_share:.0%} of the prompt is shared, use a longer prefix", False
    if short_s and median(short_s) > RATIO_BOUND * without_s:
        return None, f": a prompt of a few words takes {_ms(median(short_s))}, too, use a longer prefix", False
    if interval.low > RATIO_BOUND and interval.high > SOME_IS_SAVED_BELOW:
        return "not_reused", "", False
    if interval.low > RATIO_BOUND:
        return None, ": some time is saved, less than reuse of the shared prefix saves", True
    return None, ": the interval includes no effect and a large one; a quieter machine or more repeats tell", True


def cached_tokens(
    cold: int | None,
    judged: Sequence[int | None],
    control: int | None,
    *,
    prompt_tokens: int | None = None,
    missing_why: str = "",
    phase: str = "warm",
    by_timings: Sequence[int | None] = (),
) -> Signal:
    """Compare what judged requests say they reused with what any prompt reuses: the template's head.

    `cold` and `control` are the most that one of these reused. `by_timings` is what llama-server's `timings` say of the
    same judged requests: where both speak and differ, neither is believed.
    """
    known = [tokens for tokens in judged if tokens is not None]
    if not known:
        return absent("tokens", missing_why or f"no {phase} request succeeded")
    head, head_is = _head(cold, control)
    hits = [tokens for tokens in known if tokens > head + NONCE_SLACK_TOKENS]
    value = median(known)
    details = {"cold": cold, phase: list(judged), "control": control}
    said = f"{phase} requests report {_range(known)} cached tokens, {head_is}"
    if any(tokens is not None for tokens in by_timings):
        details["timings"] = list(by_timings)
    if disagreeing := [
        pair for pair in zip(judged, by_timings, strict=False) if None not in pair and len(set(pair)) > 1
    ]:
        usage, timings = disagreeing[0]
        no_use = f"{said}; usage says {usage} and timings.cache_n {timings} of the same request: they disagree"
        return Signal(value, "tokens", None, no_use, details)
    if is_no_head(control, prompt_tokens):
        no_use = f"{said} of {prompt_tokens}: a number that ignores the prefix tells nothing about it"
        return Signal(value, "tokens", None, no_use, details)
    if len(hits) * 2 > len(known):
        return Signal(value, "tokens", "reused", said, details)
    if hits:
        only = f"{said}; only {len(hits)} of {len(known)} {phase} requests reused anything"
        return Signal(value, "tokens", None, only, details)
    return Signal(value, "tokens", "not_reused", said, details)


@dataclass(frozen=True)
class CounterDelta:
    """What the counters gained in one phase, in tokens; None where a reading was missing."""

    hits: float | None
    queries: float | None


def counters(
    cold: CounterDelta,
    warm: CounterDelta,
    control: CounterDelta | None,
    *,
    num_warm: int,
    num_cold: int = 1,
    num_control: int = 1,
    missing_why: str = "",
    phase: str = "warm",
) -> Signal:
    """Compare the hits of a judged phase with those of requests that could share only the template's head."""
    if warm.hits is None:
        return absent("tokens", missing_why or "the server has no counters")
    if min(warm.hits, cold.hits or 0) < 0:
        return absent("tokens", "a counter went backwards: the server restarted")
    details = {"cold": asdict(cold), phase: asdict(warm), "control": asdict(control) if control else None}
    queried = "an unknown number of" if warm.queries is None else f"{warm.queries:g}"
    said = f"the {phase} phase added {warm.hits:g} hit tokens to {queried} queried tokens"
    if warm.queries is not None and warm.hits > warm.queries:
        return Signal(warm.hits, "tokens", None, f"{said}: more hits than queries, so one of them miscounts", details)
    if not warm.hits and not warm.queries:
        why = "the counters did not move: the cache is off, or these counters are not in use"
        return Signal(warm.hits, "tokens", "not_reused", why, details)
    if control and is_no_head(control.hits, control.queries):
        no_use = f"{said}, the control {control.hits:g} to {control.queries:g}: its hits ignore the prefix"
        return Signal(warm.hits, "tokens", None, no_use, details)
    head, _ = _head(_each(cold.hits, num_cold), _each(control.hits, num_control) if control else None)
    is_reuse = warm.hits > num_warm * (head + NONCE_SLACK_TOKENS)
    return Signal(warm.hits, "tokens", "reused" if is_reuse else "not_reused", said, details)


def is_no_head(reused_tokens: float | None, prompt_tokens: float | None) -> bool:
    """True when the control, a changed prefix, reuses more than any template puts before it."""
    if reused_tokens is None or prompt_tokens is None:
        return False
    return reused_tokens > max(TEMPLATE_HEAD_TOKENS + NONCE_SLACK_TOKENS, prompt_tokens / 2)


def _each(tokens: float | None, num_requests: int) -> float | None:
    return None if tokens is None or not num_requests else tokens / num_requests


def _head(cold: float | None, control: float | None) -> tuple[float, str]:
    if control is not None:
        return control, f"the control {control:g}"
    if cold is not None:
        return cold, f"the cold request {cold:g}"
    return TEMPLATE_HEAD_TOKENS, "the cold request tells no number"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
