"""Traffic through a router and several replicas: hit ratio and balance."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from minivllm.policies.access import Access
from minivllm.policies.protocol import CacheDesign
from minivllm.policies.replay import Replay, Replayed
from minivllm.policies.routing import Router

TOKENS_PER_S = 2000.0


@dataclass(frozen=True, slots=True)
class ReplicaResult:
    """What one replica was sent and found. Tokens of prompts and answers; `computed` are those it had to work for."""

    replayed: Replayed
    routed_tokens: int
    computed_tokens: int

    @property
    def num_requests(self) -> int:
        return self.replayed.tally.num_requests

    @property
    def hit_ratio_tokens(self) -> float:
        return self.replayed.tally.hit_ratio_tokens


@dataclass(frozen=True, slots=True)
class FleetResult:
    """What came of a routing policy, by replica and in all."""

    replicas: tuple[ReplicaResult, ...]

    @property
    def hit_ratio_tokens(self) -> float:
        """Prompt tokens found in the cache of the replica that was asked, over all prompt tokens."""
        asked = sum(replica.replayed.tally.num_tokens for replica in self.replicas)
        return sum(replica.replayed.tally.hit_tokens for replica in self.replicas) / asked if asked else 0.0

    @property
    def balance(self) -> float:
        """The busiest replica's computed tokens over the mean: 1 is even, N means that one of N did everything."""
        return _over_mean([replica.computed_tokens for replica in self.replicas])

    @property
    def routed_balance(self) -> float:
        """The same over the tokens that were sent, found or not."""
        return _over_mean([replica.routed_tokens for replica in self.replicas])

    def as_record(self) -> dict[str, Any]:
        return {
            "hit_ratio_tokens": self.hit_ratio_tokens,
            "balance": self.balance,
            "routed_balance": self.routed_balance,
            "replicas": [
                {
                    "requests": replica.num_requests,
                    "hit_ratio_tokens": replica.hit_ratio_tokens,
                    "routed_tokens": replica.routed_tokens,
                    "computed_tokens": replica.computed_tokens,
                }
                for replica in self.replicas
            ],
        }


def replay_fleet(
    traffic: Iterable[Access],
    designs: Sequence[CacheDesign],
    router: Router,
    publication_delay_s: float = 0.0,
    tokens_per_s: float = TOKENS_PER_S,
) -> FleetResult:
    """The whole traffic, each request to the replica that `router` chooses; `designs` has one cache for each.

    A replica works through its requests one after the other, at `tokens_per_s` for whatever it did not find: that is
    what a router sees as requests in hand. Infinity means that nothing is ever in hand.
    """
    if not designs:
        raise ValueError("designs is empty: give one cache for each replica")
    if not tokens_per_s > 0:
        raise ValueError(f"tokens_per_s is {tokens_per_s}: give a speed above 0, or infinity")
    replicas = [_Replica(Replay(design, publication_delay_s), tokens_per_s) for design in designs]
    for access in traffic:
        in_hand = [replica.in_hand(access.arrived_s) for replica in replicas]
        replicas[router.choose(access, in_hand)].take(access)
    return FleetResult(tuple(replica.result() for replica in replicas))


class _Replica:
    def __init__(self, running: Replay, tokens_per_s: float) -> None:
        self._replay, self._tokens_per_s = running, tokens_per_s
        self._ends_s: deque[float] = deque()
        self._free_s = -math.inf
        self._routed_tokens = self._computed_tokens = 0

    def in_hand(self, now_s: float) -> int:
        while self._ends_s and self._ends_s[0] <= now_s:
            self._ends_s.popleft()
        return len(self._ends_s)

    def take(self, access: Access) -> None:
        found_tokens = min(self._replay.arrive(access) * access.unit_tokens, access.num_input_tokens)
        tokens = access.num_input_tokens + access.num_output_tokens
        self._routed_tokens += tokens
        self._computed_tokens += tokens - found_tokens
        self._free_s = max(self._free_s, access.arrived_s) + (tokens - found_tokens) / self._tokens_per_s
        self._ends_s.append(self._free_s)

    def result(self) -> ReplicaResult:
        return ReplicaResult(self._replay.finish(), self._routed_tokens, self._computed_tokens)


def _over_mean(loads: Sequence[int]) -> float:
    return max(loads) * len(loads) / sum(loads) if sum(loads) else 1.0
