"""Where the traffic of a replay comes from: a trace file, or a generator. Shows how far it has been read."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minivllm.policies.access import Access
from minivllm.policies.trace import Trace, open_trace
from minivllm.policies.traffic import TrafficError, make

WORKLOAD = "workload:"


@dataclass(frozen=True, slots=True)
class Source:
    """Traffic that can be read again and again, the same each time. A file's `name` is without its folder."""

    name: str
    traffic: Iterable[Access]
    unit_tokens: int

    def read(self, why: str) -> Iterator[Access]:
        """The traffic from its start, with a progress bar on a terminal and nothing anywhere else."""
        if not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
            yield from self.traffic
            return
        from tqdm import tqdm

        if not isinstance(self.traffic, Trace):
            yield from tqdm(self.traffic, desc=why, unit=" requests", leave=False, file=sys.stderr)
            return
        with tqdm(
            total=self.traffic.num_bytes, desc=why, unit="B", unit_scale=True, leave=False, file=sys.stderr
        ) as bar:
            yield from self.traffic.accesses(bar.update)


def open_source(name: str, block_tokens: int | None = None, timestamp_unit_s: float = 1e-3) -> Source:
    """`workload:NAME[:SEED]`, or the path of a trace. Raises TrafficError or TraceError."""
    if not name.startswith(WORKLOAD):
        trace = open_trace(name, block_tokens, timestamp_unit_s)
        return Source(trace.path.name, trace, trace.block_tokens)
    kind, _, seed = name.removeprefix(WORKLOAD).partition(":")
    if seed and not seed.isdecimal():
        raise TrafficError(f"the seed of {name!r} is {seed!r}: give a whole number")
    return Source(name, make(kind, int(seed or 0)), 1)
