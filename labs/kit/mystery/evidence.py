"""Which measurements prove a diagnosis. Each rule reads records of `measure-prefix-cache` of one server, and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labbook.record import Record
from labs.kit.pair import cached_tokens

FEW_COMPETITORS, PAIR, EVICTION = 2, "cold_warm", "eviction"
Rule = Callable[[Sequence[Record]], str | None]
"""None when the records prove the diagnosis, else what is missing, in a sentence that gives nothing away."""


def _restores(record: Record, phase: str) -> bool:
    told = cached_tokens(record, phase)
    return bool(told) and all(told)


def _restores_nothing(record: Record, phase: str) -> bool:
    told = cached_tokens(record, phase)
    return bool(told) and not any(told)


def _queries(record: Record) -> float:
    return float((record.get("cache_metrics_delta") or {}).get("queries_tokens") or 0)


def _counters_say_reused(record: Record) -> bool:
    return bool(((record.get("signals") or {}).get("counters") or {}).get("supports") == "reused")


def _shares_most(record: Record) -> bool:
    return (record.get("shared_prefix_tokens") or 0) > (record.get("prompt_tokens") or 0) / 2


def _cold_pairs(records: Sequence[Record]) -> list[Record]:
    """Pairs whose warm requests restored nothing."""
    return [one for one in records if one.get("experiment") == PAIR and _restores_nothing(one, "warm")]


def cache_off(records: Sequence[Record]) -> str | None:
    if not (pairs := _cold_pairs(records)):
        return "none of these records is a pair in which the warm requests restored nothing"
    if not any(_queries(one) == 0 and not _counters_say_reused(one) for one in pairs):
        return "in these records the server did look into its cache, as its counters show"
    return None


def salted_per_request(records: Sequence[Record]) -> str | None:
    if not (pairs := _cold_pairs(records)):
        return "none of these records is a pair in which the warm requests restored nothing"
    if not any(_queries(one) > 0 and not _counters_say_reused(one) for one in pairs):
        return "in these records nobody looked into a cache, or the counters tell of hits"
    if not any(_shares_most(one) for one in pairs if _queries(one) > 0):
        return "in these records the prompts share hardly anything, which would explain it without a salt"
    return None


def clock_injected(records: Sequence[Record]) -> str | None:
    if not (pairs := _cold_pairs(records)):
        return "none of these records is a pair in which the warm requests restored nothing"
    if not any(not _shares_most(one) for one in pairs):
        return "in these records the prompts share nearly everything when they arrive: nothing was put in front of them"
    return None


def counters_lying(records: Sequence[Record]) -> str | None:
    if not any(_counters_say_reused(one) for one in _cold_pairs(records)):
        return "in none of these records do the counters tell of hits while the warm requests restored nothing"
    return None


def one_slot(records: Sequence[Record]) -> str | None:
    few = [one for one in _evictions(records) if one.get("competitors", 0) <= FEW_COMPETITORS]
    if not any(_restores_nothing(one, "again") for one in few):
        return f"show that at most {FEW_COMPETITORS} other prompts in between are enough to lose a prefix that was warm"
    return None


def evicting(records: Sequence[Record]) -> str | None:
    kept = [one for one in _evictions(records) if _restores(one, "again")]
    lost = [one for one in _evictions(records) if _restores_nothing(one, "again")]
    if not lost:
        return "in none of these records is a warm prefix lost to others"
    if not kept or min(one["competitors"] for one in kept) >= min(one["competitors"] for one in lost):
        return "show as well that fewer other prompts leave it alone: a server that forgets at once has another trouble"
    return None


def _evictions(records: Sequence[Record]) -> list[Record]:
    """Those in which the prefix was warm before the others came."""
    return [one for one in records if one.get("experiment") == EVICTION and _restores(one, "warm")]


RULES: dict[str, Rule] = {
    "cache_off": cache_off,
    "one_slot": one_slot,
    "clock_injected": clock_injected,
    "evicting": evicting,
    "salted_per_request": salted_per_request,
    "counters_lying": counters_lying,
}
