"""How the cost of a prefix index and its eviction grows, and how fast a trace is replayed in each design.

    .venv/bin/python scripts/bench-policies.py               # 1,000 to 1,000,000 pages, 300,000 block lookups
    .venv/bin/python scripts/bench-policies.py --quick       # small: shows that it works, not how fast
    .venv/bin/python scripts/bench-policies.py --json        # one object on stdout

Times are CPU seconds of one run. Memory is what Python allocated (tracemalloc) for a full
cache: index, eviction and the block ids themselves.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from minivllm.policies.access import Access
from minivllm.policies.block_hash import BlockHashCache
from minivllm.policies.designs import Setup
from minivllm.policies.optimum import Future
from minivllm.policies.replay import replay
from minivllm.policies.reuse_distance import ReuseDistance

PATH_BLOCKS = 25
KINDS: dict[str, Callable[[int], BlockHashCache]] = {
    "exact index, lru": lambda pages: BlockHashCache(pages),
    "exact index, lru, blocks of 16": lambda pages: BlockHashCache(pages, 16),
    "exact index, lfu": lambda pages: BlockHashCache(pages, eviction="lfu"),
    "engine's index, lru": lambda pages: BlockHashCache(pages, engine_index=True),
    "engine's index, lru, blocks of 16": lambda pages: BlockHashCache(pages, 16, engine_index=True),
}


@dataclass(frozen=True)
class Growth:
    """Microseconds a block while filling, looking up and, full, evicting for something new; bytes a page when full."""

    kind: str
    pages: int
    insert_us: float
    lookup_us: float
    evict_us: float
    bytes_per_page: float


@dataclass(frozen=True)
class Speed:
    """CPU seconds for a whole trace."""

    design: str
    blocks: int
    replay_s: float
    hit_ratio: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 pages and 500 requests")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    sizes = (1_000, 10_000) if arguments.quick else (1_000, 10_000, 100_000, 1_000_000)
    growth = [_growth(kind, pages) for kind, pages in _watched([(kind, pages) for kind in KINDS for pages in sizes])]
    speed = list(_speeds(500 if arguments.quick else 12_000))
    if arguments.json:
        print(json.dumps({"growth": [asdict(row) for row in growth], "speed": [asdict(row) for row in speed]}))
    else:
        print("\n".join([*_growth_lines(growth), "", *_speed_lines(speed)]))
    return 0


def _growth(kind: str, pages: int) -> Growth:
    size = KINDS[kind](1).block_units
    insert_us, lookup_us, evict_us = _times_us(KINDS[kind](pages), pages, size)
    tracemalloc.start()
    cache = KINDS[kind](pages)
    for access in _paths(pages, size, first=0):
        cache.insert(access)
    gc.collect()
    num_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return Growth(kind, pages, insert_us, lookup_us, evict_us, num_bytes / (cache.stats().held_units / size))


def _times_us(cache: BlockHashCache, pages: int, size: int) -> tuple[float, float, float]:
    old = list(_paths(pages, size, first=0))
    new = list(_paths(min(pages, 100_000), size, first=pages))
    asked = random.Random(1).sample(old, min(len(old), 4_000))
    times_us = []
    for accesses, act in ((old, cache.insert), (asked, cache.lookup), (new, cache.insert)):
        started_s = time.process_time()
        for access in accesses:
            act(access)
        times_us.append((time.process_time() - started_s) / (len(accesses) * PATH_BLOCKS) * 1e6)
    return times_us[0], times_us[1], times_us[2]


def _paths(pages: int, size: int, first: int) -> Iterator[Access]:
    """Requests of 25 blocks that nobody else has; `pages` blocks together."""
    for start in range(first, first + pages, PATH_BLOCKS):
        ids = tuple(range(start * size, (start + PATH_BLOCKS) * size))
        yield Access(ids, len(ids))


def _speeds(num_requests: int) -> Iterator[Speed]:
    trace = _trace(num_requests)
    num_blocks = sum(len(access.unit_ids) for access in trace)
    setup = Setup("block-hash", capacity_units=10_000)
    setups = [Setup("engine", capacity_units=10_000), *setup.of_every_kind()]
    for one in _watched(setups):
        started_s = time.process_time()
        design = one.build(Future(trace) if one.needs_future else None)
        tally = replay(trace, design).tally
        taken_s = time.process_time() - started_s
        yield Speed(f"{one.design} {one.eviction}", num_blocks, taken_s, tally.hit_ratio_blocks)
    reuse, started_s = ReuseDistance(), time.process_time()
    for access in trace:
        reuse.used(access)
    yield Speed("reuse distances", num_blocks, time.process_time() - started_s, reuse.num_uses.total() / num_blocks)


def _trace(num_requests: int) -> list[Access]:
    """Conversations of about 25 blocks a request that grow turn by turn behind a common head, many at a time."""
    chance, new_id = random.Random(8), iter(range(10, 10**9))
    open_ones: list[tuple[int, ...]] = []
    trace: list[Access] = []
    while len(trace) < num_requests:
        if len(open_ones) < 400 or chance.random() < 0.1:
            open_ones.append((1, 2, *(next(new_id) for _ in range(chance.randrange(6, 22)))))
        turn = chance.randrange(len(open_ones))
        open_ones[turn] += tuple(next(new_id) for _ in range(chance.randrange(1, 6)))
        trace.append(Access(open_ones[turn], len(open_ones[turn]) * 512, arrived_s=float(len(trace)), unit_tokens=512))
        if chance.random() < 0.18:
            del open_ones[turn]
    return trace


def _watched(items: list[Any]) -> Iterator[Any]:
    if not sys.stderr.isatty():
        return iter(items)
    from tqdm import tqdm

    return iter(tqdm(items, leave=False, file=sys.stderr))


def _growth_lines(rows: list[Growth]) -> Iterator[str]:
    times = f"{'insert':>10}{'lookup':>10}{'evict':>10}  us a block"
    yield f"{'index and eviction':34}{'pages':>10}{times}{'bytes a page':>14}"
    for row in rows:
        times = f"{row.insert_us:>10.2f}{row.lookup_us:>10.2f}{row.evict_us:>10.2f}"
        yield f"{row.kind:34}{row.pages:>10,}{times}{'':12}{row.bytes_per_page:>14.0f}"


def _speed_lines(rows: list[Speed]) -> Iterator[str]:
    yield f"{'replay':34}{'blocks':>10}{'seconds':>10}{'hit ratio':>12}"
    for row in rows:
        yield f"{row.design:34}{row.blocks:>10,}{row.replay_s:>10.2f}{row.hit_ratio:>12.3f}"


if __name__ == "__main__":
    sys.exit(main())
