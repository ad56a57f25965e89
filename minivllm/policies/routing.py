"""Several replicas behind one router: who gets a request, and what that does to their caches.

Each replica has a cache of its own, so a router that spreads a conversation computes it once on each; one that keeps
everything alike together fills one replica and leaves the others idle. Every router here answers one question: which
replica, given the request and how many requests each replica still has in hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, Protocol

from minivllm.policies.access import Access
from minivllm.policies.protocol import check_positive
from minivllm.policies.radix import RadixCache


class Router(Protocol):
    def choose(self, access: Access, in_hand: Sequence[int]) -> int:
        """The number of the replica that gets this request; `in_hand` has the unfinished requests of each."""
        ...


class RoundRobin:
    """Each in turn. Even by construction, and blind: what a replica holds plays no part."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, access: Access, in_hand: Sequence[int]) -> int:
        chosen = self._next % len(in_hand)
        self._next = chosen + 1
        return chosen


class Sticky:
    """A session stays where its hash puts it, as with a cookie. Requests without a session take turns.

    Finds again what a session said before; what two sessions share is computed on each of their replicas.
    """

    def __init__(self) -> None:
        self._without_session = RoundRobin()

    def choose(self, access: Access, in_hand: Sequence[int]) -> int:
        if access.session is None:
            return self._without_session.choose(access, in_hand)
        return _hashed(f"{access.salt}/{access.session}", len(in_hand))


class PrefixHash:
    """Prompts that begin with the same `prefix_tokens` tokens go to the same replica, wherever they come from.

    Needs no memory. Too short a prefix sends everything behind one system message to one replica; too long a one parts
    what could have shared.
    """

    def __init__(self, prefix_tokens: int = 256) -> None:
        check_positive(prefix_tokens=prefix_tokens)
        self.prefix_tokens = prefix_tokens

    def choose(self, access: Access, in_hand: Sequence[int]) -> int:
        prefix = access.unit_ids[: -(-self.prefix_tokens // access.unit_tokens)]
        return _hashed(f"{access.salt}/{prefix}", len(in_hand))


class LongestPrefix:
    """The replica that was sent the most alike, unless it has too much in hand: cache-aware routing.

    Models `cache_aware` of sglang-router 0.3 and its fork vllm-router 0.1: the router remembers what it sent where, in
    a tree for each replica, and does not ask the replicas what they still hold.

        too uneven      (max - min in hand above `balance_abs`, and max above `balance_rel` times min): the least busy
        match           of more than `threshold` of the prompt somewhere: the replica with the longest
        no match        `cold` decides: "least-busy", the first of them when several are, is what both programs do;
                        "smallest-tree", the replica that was sent the least, is what their comments say

    The first way of `cold` sends everything to the first replica as long as requests come one at a time.
    `tree_units` bounds what is remembered of each replica; the real ones count characters.
    """

    def __init__(
        self,
        num_replicas: int,
        threshold: float = 0.3,
        balance_abs: int = 64,
        balance_rel: float = 1.5,
        cold: Literal["least-busy", "smallest-tree"] = "least-busy",
        tree_units: int | None = 2**20,
    ) -> None:
        check_positive(num_replicas=num_replicas, balance_rel=balance_rel)
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold}: give a share of the prompt from 0 to 1")
        if balance_abs < 0:
            raise ValueError(f"balance_abs is {balance_abs}: give a number of requests from 0")
        if cold not in ("least-busy", "smallest-tree"):
            raise ValueError(f"cold is {cold!r}: choose 'least-busy' or 'smallest-tree'")
        self.threshold, self.balance_abs, self.balance_rel, self.cold = threshold, balance_abs, balance_rel, cold
        self._sent = [RadixCache(tree_units) for _ in range(num_replicas)]

    def choose(self, access: Access, in_hand: Sequence[int]) -> int:
        chosen = self._least_busy(in_hand) if self._is_uneven(in_hand) else self._most_alike(access, in_hand)
        self._sent[chosen].insert(replace(access, output_ids=(), num_output_tokens=0))
        return chosen

    def _is_uneven(self, in_hand: Sequence[int]) -> bool:
        most, least = max(in_hand), min(in_hand)
        return most - least > self.balance_abs and most > self.balance_rel * least

    def _most_alike(self, access: Access, in_hand: Sequence[int]) -> int:
        matched = [tree.lookup(access) for tree in self._sent]
        best = max(range(len(matched)), key=lambda number: (matched[number], -in_hand[number]))
        if matched[best] > self.threshold * len(access.unit_ids):
            return best
        if self.cold == "least-busy":
            return self._least_busy(in_hand)
        return min(range(len(self._sent)), key=lambda number: self._sent[number].stats().held_units)

    def _least_busy(self, in_hand: Sequence[int]) -> int:
        return min(range(len(in_hand)), key=lambda number: in_hand[number])


def _hashed(text: str, num_replicas: int) -> int:
    """The same for the same text on every machine, which Python's own hash is not."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]) % num_replicas


ROUTERS: MappingProxyType[str, Callable[[int], Router]] = MappingProxyType(
    {
        "round-robin": lambda num_replicas: RoundRobin(),
        "sticky": lambda num_replicas: Sticky(),
        "prefix-hash": lambda num_replicas: PrefixHash(),
        "longest-prefix": lambda num_replicas: LongestPrefix(num_replicas),
    }
)
