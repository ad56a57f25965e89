"""Three signals of reuse, side by side: the clock, `cached_tokens`, the counters. Pure functions over numbers.

Each signal may be absent, or present and unable to tell; both are said in words. None of them is averaged with another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

Support = Literal["reused", "not_reused"]

# Tokens of a nonce that may by chance be equal to those of an earlier one.
NONCE_SLACK_TOKENS = 8
# What a template puts before the first word of any prompt, when no control request has shown it.
TEMPLATE_HEAD_TOKENS = 24
# Below this, scheduling and the network are as long as the computing that a cache saves.
CLOCK_FLOOR_S = 0.05
CLOCK_GAIN_S = 0.02
REUSED_BELOW = 0.5
NOT_REUSED_ABOVE = 0.85
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
    cold_s: float,
    warm_s: Sequence[float],
    control_s: float | None,
    *,
    timed: str = "time to first token",
    shared_share: float | None = None,
) -> Signal:
    """Compare warm times with what a request takes that cannot reuse: the cold one, and the control if there is one.

    The faster of those two is the yardstick, so that a slow first request does not look like a cache. `shared_share`
    is the part of the prompt that could be reused: where it is small, equal times say nothing.
    """
    if not warm_s:
        return absent("warm / cold", "no warm request succeeded")
    warm = median(warm_s)
    without_s = [cold_s] if control_s is None else [cold_s, control_s]
    yardstick_s = min(without_s)
    details = {"timed": timed, "yardstick_s": yardstick_s, "warm_p50_s": warm}
    supports, doubt = _clock_tells(warm_s, without_s, shared_share)
    why = f"{timed} {_ms(warm)} warm (median) against {_ms(yardstick_s)} without reuse"
    return Signal(warm / cold_s, "warm / cold", supports, why + doubt, details)


def _clock_tells(
    warm_s: Sequence[float],
    without_s: Sequence[float],
    shared_share: float | None,
) -> tuple[Support | None, str]:
    """What times support, and the doubt that keeps them from it."""
    warm, fastest_s, slowest_s = median(warm_s), min(without_s), max(without_s)
    is_faster = warm < REUSED_BELOW * fastest_s and fastest_s - warm >= CLOCK_GAIN_S
    if is_faster and _all_but_a_straggler(warm_s, fastest_s):
        return "reused", ""
    if fastest_s < CLOCK_FLOOR_S:
        return None, ": too short for a clock to tell, use a longer prefix"
    if shared_share is not None and shared_share < MIN_SHARED_SHARE:
        return None, f": only {shared_share:.0%} of the prompt is shared, use a longer prefix"
    if slowest_s > UNSTEADY_ABOVE * fastest_s:
        return None, (
            f", but cold and control should take equally long and took {_ms(fastest_s)} and "
            f"{_ms(slowest_s)}: the machine was busy, or one of them was not cold"
        )
    if warm > NOT_REUSED_ABOVE * fastest_s:
        return "not_reused", ""
    return None, ": a difference this size may be noise, use a longer prefix or more questions"


def cached_tokens(
    cold: int | None,
    warm: Sequence[int | None],
    control: int | None,
    *,
    prompt_tokens: int | None = None,
    missing_why: str = "",
) -> Signal:
    """Compare what warm requests say they reused with what any prompt reuses: the template's head."""
    known = [tokens for tokens in warm if tokens is not None]
    if not known:
        return absent("tokens", missing_why or "no warm request succeeded")
    head, head_is = _head(cold, control)
    hits = [tokens for tokens in known if tokens > head + NONCE_SLACK_TOKENS]
    value = median(known)
    details = {"cold": cold, "warm": list(warm), "control": control}
    said = f"warm requests report {_range(known)} cached tokens, {head_is}"
    if is_no_head(control, prompt_tokens):
        no_use = f"{said} of {prompt_tokens}: a number that ignores the prefix tells nothing about it"
        return Signal(value, "tokens", None, no_use, details)
    if len(hits) * 2 > len(known):
        return Signal(value, "tokens", "reused", said, details)
    if hits:
        only = f"{said}; only {len(hits)} of {len(known)} warm requests reused anything"
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
    missing_why: str = "",
) -> Signal:
    """Compare the hits of the warm phase with those of requests that could share only the template's head."""
    if warm.hits is None:
        return absent("tokens", missing_why or "the server has no counters")
    if min(warm.hits, cold.hits or 0) < 0:
        return absent("tokens", "a counter went backwards: the server restarted")
    details = {"cold": asdict(cold), "warm": asdict(warm), "control": asdict(control) if control else None}
    queried = "an unknown number of" if warm.queries is None else f"{warm.queries:g}"
    said = f"the warm phase added {warm.hits:g} hit tokens to {queried} queried tokens"
    if warm.queries is not None and warm.hits > warm.queries:
        return Signal(warm.hits, "tokens", None, f"{said}: more hits than queries, so one of them miscounts", details)
    if not warm.hits and not warm.queries:
        why = "the counters did not move: the cache is off, or these counters are not in use"
        return Signal(warm.hits, "tokens", "not_reused", why, details)
    if control and is_no_head(control.hits, control.queries):
        no_use = f"{said}, the control {control.hits:g} to {control.queries:g}: its hits ignore the prefix"
        return Signal(warm.hits, "tokens", None, no_use, details)
    head, _ = _head(cold.hits, control.hits if control else None)
    is_reuse = warm.hits > num_warm * (head + NONCE_SLACK_TOKENS)
    return Signal(warm.hits, "tokens", "reused" if is_reuse else "not_reused", said, details)


def is_no_head(reused_tokens: float | None, prompt_tokens: float | None) -> bool:
    """True when the control, a changed prefix, reuses more than any template puts before it."""
    if reused_tokens is None or prompt_tokens is None:
        return False
    return reused_tokens > max(TEMPLATE_HEAD_TOKENS + NONCE_SLACK_TOKENS, prompt_tokens / 2)


def _head(cold: float | None, control: float | None) -> tuple[float, str]:
    if control is not None:
        return control, f"the control {control:g}"
    if cold is not None:
        return cold, f"the cold request {cold:g}"
    return TEMPLATE_HEAD_TOKENS, "the cold request tells no number"


def _all_but_a_straggler(warm_s: Sequence[float], yardstick_s: float) -> bool:
    slow = sum(seconds >= NOT_REUSED_ABOVE * yardstick_s for seconds in warm_s)
    return slow <= (1 if len(warm_s) >= 3 else 0)


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
