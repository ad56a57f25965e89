"""Counters of one engine: whole numbers that only grow. Tokens, unless the name says requests."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counters:
    lookup_requests: int = 0
    hit_requests: int = 0
    queried_tokens: int = 0
    restored_tokens: int = 0
    computed_prefill_tokens: int = 0
    recomputed_tokens: int = 0
    decoded_tokens: int = 0
    published_tokens: int = 0
    evicted_tokens: int = 0
    preemptions: int = 0
    flights_opened: int = 0
    flight_followers: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)
