"""The simulator's eviction policies in the engine's books (`FromEngine` in eviction.py goes the other way).

The engine tells a policy at each release how often a page was restored (`PageUse`); the simulator's policies hear of
every use when it happens (`touch`), and when a page is gone (`forget`).
"""

from __future__ import annotations

from collections.abc import Callable

from minivllm.cache.eviction import ScanResistant, TailFirstLRU
from minivllm.policies.eviction import POLICIES as SIMULATED
from minivllm.policies.eviction import Eviction as TouchedEviction
from minivllm.policies.leaves_by_key import ParentOf
from minivllm.protocols import Eviction, PageUse


class InEngine:
    """A policy of the simulator, spoken to as the engine does."""

    def __init__(self, policy: TouchedEviction) -> None:
        self._policy = policy
        self._known: dict[int, PageUse] = {}

    def __len__(self) -> int:
        return len(self._policy)

    def add(self, page_id: int, use: PageUse) -> None:
        known = self._known.get(page_id)
        if known is not None and known.content_number != use.content_number:
            self._policy.forget(page_id)  # the id was given to other content in the meantime
            known = None
        for _ in range(use.num_restores - (known.num_restores if known else 0)):
            self._policy.touch(page_id)
        self._known[page_id] = use
        self._policy.add(page_id)

    def remove(self, page_id: int) -> None:
        self._policy.remove(page_id)

    def pop_victim(self) -> int:
        page_id = self._policy.pop_victim()
        del self._known[page_id]
        return page_id


def _simulated(name: str) -> Callable[[ParentOf], Eviction]:
    return lambda parent_of: InEngine(SIMULATED[name](parent_of))


POLICIES: dict[str, Callable[[ParentOf], Eviction]] = {
    "lru": lambda parent_of: TailFirstLRU(),
    "lfu": _simulated("lfu"),
    "fifo": _simulated("fifo"),
    "length": _simulated("length"),
    "scan": lambda parent_of: ScanResistant(),
}
"""The choices of `EngineConfig.eviction`; each is built for the index whose `parent_of` it asks."""
