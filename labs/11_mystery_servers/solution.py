"""Lab 11, a solution for the records in `example/`: yours come in another order."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Diagnosis:
    """`name` and `setting` are words of the tables in the README, `records` are numbers of `labbook list`."""

    name: str
    records: list[int] = field(default_factory=list)
    setting: str = ""


def slow_proof(cached_tokens_warm: int, counter_hits: int, counter_queries: int) -> str:
    """What the three numbers of a pair say together, slowly."""
    if cached_tokens_warm:
        return "something was restored: what is wrong shows only later"
    if counter_hits:
        return "the counters and the answers contradict each other"
    return "nobody looked" if not counter_queries else "somebody looked, and found nothing"


def diagnoses() -> dict[str, Diagnosis]:
    """A letter from A to F to what is wrong with that server."""
    return {
        "A": Diagnosis("evicting", [2, 3], "a_larger_pool"),
        "B": Diagnosis("counters_lying", [4], "distrust_the_counters"),
        "C": Diagnosis("salted_per_request", [7], "one_salt_per_tenant"),
        "D": Diagnosis("cache_off", [10], "turn_the_cache_on"),
        "E": Diagnosis("one_slot", [14], "more_slots"),
        "F": Diagnosis("clock_injected", [16], "remove_the_clock"),
    }
