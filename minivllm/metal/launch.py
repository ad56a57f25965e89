"""One launch of a compiled kernel: the shape of its grid, its buffers in place, and every thread run to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minivllm.metal.library import Buffer, Launch, Report, entry_of, launch_lock, runtime
from minivllm.metal.options import ORDERS, Options
from minivllm.metal.report import KINDS, Reporter

MAX_THREADS_PER_THREADGROUP = 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch: threads of the whole grid and of one threadgroup."""

    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]

    @classmethod
    def of(cls, grid: Sequence[int], threadgroup: Sequence[int]) -> Shape:
        for name, triple in (("grid", grid), ("threadgroup", threadgroup)):
            if len(triple) != 3 or any(int(length) < 0 for length in triple):
                raise ValueError(f"{name} is three numbers of threads, not {tuple(triple)}")
        gx, gy, gz = (int(length) for length in grid)
        tx, ty, tz = (int(length) for length in threadgroup)
        if tx * ty * tz > MAX_THREADS_PER_THREADGROUP:
            raise ValueError(
                f"Thread group size ({tx * ty * tz}) is greater than the maximum allowed threads per threadgroup "
                f"({MAX_THREADS_PER_THREADGROUP})."
            )
        if tx * ty * tz == 0:
            raise ValueError(f"a threadgroup of {(tx, ty, tz)} has no threads")
        return cls((gx, gy, gz), (max(1, min(tx, gx)), max(1, min(ty, gy)), max(1, min(tz, gz))))


def execute(reporter: Reporter, shape: Shape, now: Options) -> list[np.ndarray]:
    """The outputs after every thread has run."""
    buffers = reporter.buffers
    outputs = [(i, buffer) for i, buffer in enumerate(buffers) if buffer.is_output]
    with launch_lock:
        try:
            runtime().place(buffers, is_checked=now.check, allows_stray_reads=now.stray_reads == "zero")
            if all(shape.grid):
                _launch(reporter, shape, now)
            if now.check:
                _require_written(reporter, outputs)
            return [runtime().fetch(i, buffer) for i, buffer in outputs]
        finally:
            runtime().close()


def _launch(reporter: Reporter, shape: Shape, now: Options) -> None:
    launch = Launch(
        entry=entry_of(reporter.library),
        grid=shape.grid,
        threadgroup=shape.threadgroup,
        order=ORDERS.index(now.order),
        is_checked=now.check,
        allows_stray_reads=now.stray_reads == "zero",
        num_arena_bytes=now.threadgroup_bytes,
        seed=now.seed,
        timeout_s=now.timeout_s,
    )
    report: Report = runtime().run(launch, reporter.buffers)
    if KINDS[report.kind] == "interrupted":
        raise KeyboardInterrupt
    if report.kind:
        raise reporter.fault(report)


def _require_written(reporter: Reporter, outputs: Sequence[tuple[int, Buffer]]) -> None:
    for i, buffer in outputs:
        num_unwritten, first = runtime().unwritten(i)
        if num_unwritten and not buffer.is_initialised:
            raise reporter.unwritten(buffer, num_unwritten, first)
