"""Eight kinds of traffic, made from a seed: `make("chat", seed=7, turns=12)` is an iterable of Access.

Token ids are units of one token and mean nothing: what matters is where prompts are equal, who asks, and when.
"""

from __future__ import annotations

import difflib
from dataclasses import fields
from types import MappingProxyType

from minivllm.policies.traffic.branching import SelfConsistency, TreeSearch
from minivllm.policies.traffic.conversations import Agent, Chat
from minivllm.policies.traffic.shared_prefixes import Document, FewShot, Preamble, Retrieval
from minivllm.policies.traffic.workload import TrafficError, Workload

WORKLOADS: MappingProxyType[str, type[Workload]] = MappingProxyType(
    {kind.name: kind for kind in (Chat, Agent, Retrieval, FewShot, SelfConsistency, TreeSearch, Document, Preamble)}
)

__all__ = ["WORKLOADS", "TrafficError", "Workload", "make"]


def make(name: str, seed: int = 0, **sizes: float) -> Workload:
    """The workload of that name, with `sizes` in the place of its defaults. Raises TrafficError."""
    if name not in WORKLOADS:
        close = difflib.get_close_matches(name, WORKLOADS, n=1)
        guess = f": did you mean {close[0]!r}?" if close else ""
        raise TrafficError(f"no workload is called {name!r}{guess} (there are {', '.join(WORKLOADS)})")
    kind = WORKLOADS[name]
    known = [field.name for field in fields(kind) if field.name != "seed"]
    for size in sizes:
        if size not in known:
            raise TrafficError(f"{name} has no size {size!r}: it has {', '.join(known)}")
    return kind(seed=seed, **sizes)  # each kind checks its own values
