"""Lab 11: six servers that look alike. The question is in README.md; `labs check 11` says how far you are."""

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
    raise NotImplementedError("diagnoses is not written yet")
