"""Traffic run through a design, and what came of it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from minivllm.policies.access import Access
from minivllm.policies.protocol import CacheDesign, Stats

Name = TypeVar("Name")


@dataclass(slots=True)
class Tally:
    """What requests asked for and what was found, in the traffic's own units (its blocks) and in tokens.

    A hit counts only along an unbroken prefix. A block found is worth its tokens; the last block of a prompt may be
    partial, so no request finds more tokens than its `num_input_tokens`. An engine has to compute at least one token
    of a prompt even if all of it is cached; public traces do not subtract that, and neither does this.
    """

    num_requests: int = 0
    num_blocks: int = 0
    hit_blocks: int = 0
    num_tokens: int = 0
    hit_tokens: int = 0
    unit_tokens: int = 1

    def add(self, access: Access, found_units: int) -> None:
        self.num_requests += 1
        self.num_blocks += len(access.unit_ids)
        self.hit_blocks += found_units
        self.num_tokens += access.num_input_tokens
        self.hit_tokens += min(found_units * access.unit_tokens, access.num_input_tokens)
        self.unit_tokens = access.unit_tokens

    @property
    def hit_ratio_blocks(self) -> float:
        """Found blocks over asked ones; 0 without any."""
        return self.hit_blocks / self.num_blocks if self.num_blocks else 0.0

    @property
    def hit_ratio_tokens(self) -> float:
        """Found tokens over asked ones; 0 without any."""
        return self.hit_tokens / self.num_tokens if self.num_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """A finished replay: what the requests saw, and what the design counted."""

    tally: Tally
    stats: Stats

    def as_record(self) -> dict[str, Any]:
        """The numbers as JSON has them. Blocks are the traffic's own units."""
        tally, stats = self.tally, self.stats
        return {
            "hit_ratio_blocks": tally.hit_ratio_blocks,
            "hit_ratio_tokens": tally.hit_ratio_tokens,
            "requests": tally.num_requests,
            "queried_blocks": tally.num_blocks,
            "hit_blocks": tally.hit_blocks,
            "queried_tokens": tally.num_tokens,
            "hit_tokens": tally.hit_tokens,
            "block_tokens": tally.unit_tokens,
            "inserted_blocks": stats.inserted_units,
            "evicted_blocks": stats.evicted_units,
            "held_blocks": stats.held_units,
            "unreachable_blocks": stats.unreachable_units,
            "requests_not_kept": stats.num_not_kept,
        }


class Replay:
    """One design under traffic, request by request.

    What a request computed is findable `publication_delay_s` seconds of trace time after its arrival, so that requests
    that arrive close together miss what they would have shared:

        delay 0      t=0 a b c → 0 found      t=1 a b c → 3 found
        delay 2      t=0 a b c → 0 found      t=1 a b c → 0 found     t=2 a b c → 3 found

    Memory holds the design and the requests of one delay, whatever the length of the traffic. Arrivals may not go back
    in time when there is a delay.
    """

    def __init__(self, design: CacheDesign, publication_delay_s: float = 0.0) -> None:
        if not (math.isfinite(publication_delay_s) and publication_delay_s >= 0):
            raise ValueError(f"publication_delay_s is {publication_delay_s}: give 0 or more seconds")
        self.design, self.publication_delay_s = design, publication_delay_s
        self.tally = Tally()
        self._unpublished: list[tuple[float, int, Access]] = []

    def arrive(self, access: Access) -> int:
        """One request; returns how many units it found."""
        self._publish_until(access.arrived_s)
        found = self.design.lookup(access)
        self.tally.add(access, found)
        if self.publication_delay_s:
            due_s = access.arrived_s + self.publication_delay_s
            heapq.heappush(self._unpublished, (due_s, self.tally.num_requests, access))
        else:
            self.design.insert(access)
        return found

    def finish(self) -> Replayed:
        """Let the last requests end, too."""
        self._publish_until(math.inf)
        return Replayed(self.tally, self.design.stats())

    def _publish_until(self, now_s: float) -> None:
        while self._unpublished and self._unpublished[0][0] <= now_s:
            self.design.insert(heapq.heappop(self._unpublished)[2])


def replay(traffic: Iterable[Access], design: CacheDesign, publication_delay_s: float = 0.0) -> Replayed:
    """The whole traffic through one design."""
    running = Replay(design, publication_delay_s)
    for access in traffic:
        running.arrive(access)
    return running.finish()


def replay_each(
    traffic: Iterable[Access], designs: Mapping[Name, CacheDesign], publication_delay_s: float = 0.0
) -> dict[Name, Replayed]:
    """The same traffic through many designs, read once."""
    running = {name: Replay(design, publication_delay_s) for name, design in designs.items()}
    for access in traffic:
        for one in running.values():
            one.arrive(access)
    return {name: one.finish() for name, one in running.items()}
