"""The rows of every table: a single flight policy, a publication policy, an eviction policy."""

from __future__ import annotations

from dataclasses import dataclass

from minivllm.config import CHOICES, EngineConfig
from scripts.bench_reuse.workloads import Workload

# Every row runs on these: 9 places, because the workload with followers has 9 requests at once.
BASE = EngineConfig(max_active_requests=9)
BASELINE = "off"


@dataclass(frozen=True)
class Policy:
    name: str
    single_flight: str
    publication: str
    eviction: str = BASE.eviction


ROWS = (
    Policy(BASELINE, "off", "on_finish"),
    Policy("off, incremental", "off", "incremental"),
    Policy("release on finish", "release_on_finish", "on_finish"),
    Policy("release on finish, incremental", "release_on_finish", "incremental"),
    Policy("release after prefill", "release_after_prefill", "on_finish"),
    Policy("release after prefill, incremental", "release_after_prefill", "incremental"),
    Policy("page", "page", "incremental"),
)


def policies_of(workload: Workload) -> tuple[Policy, ...]:
    """All rows; where pages have to go, also the last row under every other eviction policy that there is."""
    if workload.pool_share is None:
        return ROWS
    page = ROWS[-1]
    others = [eviction for eviction in CHOICES["eviction"] if eviction != page.eviction]
    return (*ROWS, *(Policy(f"page, {name}", page.single_flight, page.publication, name) for name in others))
