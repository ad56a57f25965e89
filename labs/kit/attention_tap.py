"""What goes into attention and comes out of it, in one layer of a real engine's step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from minivllm.attention.plan import Plan
from minivllm.backend import mx
from minivllm.engine import Engine


@dataclass(frozen=True)
class AttentionCall:
    """One decoding row of one step: `queries` and `out` are float32 [heads, head_dim]."""

    queries: np.ndarray
    out: np.ndarray
    page_table: tuple[int, ...]
    num_tokens: int

    def heads_that_differ(self, answers: np.ndarray, tolerance: float = 1e-4) -> int:
        """How many heads of `answers` [heads, head_dim] are not what the engine computed. NaN is not."""
        is_close = np.abs(answers - self.out).max(axis=1) <= tolerance
        return int((~is_close).sum())


@dataclass
class AttentionTap:
    """The decoding rows of the newest step, in the order of the step."""

    rows: list[AttentionCall] = field(default_factory=list)

    def keep(self, queries: mx.array, out: mx.array, plan: Plan) -> None:
        self.rows.clear()
        if plan.singles is None:
            return
        many = zip(plan.singles.page_tables, plan.singles.num_tokens, strict=True)
        for row, (page_table, num_tokens) in enumerate(many):
            self.rows.append(AttentionCall(_copied(queries[row]), _copied(out[row]), page_table, num_tokens))


@contextmanager
def attention_tap(engine: Engine, layer: int) -> Iterator[AttentionTap]:
    """Within the block, the engine's own attention runs as always, and its layer `layer` is copied after each step."""
    tap, own = AttentionTap(), engine.runner.attention

    def watched(at: int, queries: mx.array, keys: mx.array, values: mx.array, plan: Plan) -> mx.array:
        out = own(at, queries, keys, values, plan)
        if at == layer:
            tap.keep(queries, out, plan)
        return out

    engine.runner.attention = watched
    try:
        yield tap
    finally:
        engine.runner.attention = own


def _copied(row: mx.array) -> np.ndarray:
    return np.array(row.astype(mx.float32))
