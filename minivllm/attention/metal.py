"""Attention that reads pages where they are, by the kernels of minivllm/metal/paged_attention.metal.

Nothing is gathered: a step moves the keys and values that its rows may see, once for each query head or tile of
queries, and no copy of them. The kernels run on an Apple GPU, or very slowly in the runner (minivllm/metal/runner.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minivllm.attention.paged_kernels import MakeKernel, PagedKernels
from minivllm.attention.pages import PageTables, PlainPages
from minivllm.attention.plan import Plan
from minivllm.backend import mx
from minivllm.cache.storage import KVStorage


@dataclass(frozen=True, slots=True)
class PlanTables:
    """The page tables of a plan, checked, and made arrays once for all layers."""

    plan: Plan
    singles: PageTables | None
    chunks: tuple[PageTables, ...]

    @classmethod
    def of(cls, plan: Plan, storage: KVStorage) -> PlanTables:
        def tables(page_tables: Sequence[Sequence[int]], num_tokens: Sequence[int]) -> PageTables:
            return PageTables(page_tables, num_tokens, storage.num_pages, storage.page_size)

        singles = None if plan.singles is None else tables(plan.singles.page_tables, plan.singles.num_tokens)
        chunks = tuple(tables([chunk.page_table], [chunk.start + chunk.num_rows]) for chunk in plan.chunks)
        return cls(plan, singles, chunks)


class MetalAttention:
    """Writes a step's keys and values into their pages, then attends to the pages themselves."""

    def __init__(self, storage: KVStorage, make_kernel: MakeKernel = mx.fast.metal_kernel) -> None:
        self._storage = storage
        self._kernels = PagedKernels(make_kernel)
        self._last: PlanTables | None = None

    def __call__(self, layer: int, queries: mx.array, keys: mx.array, values: mx.array, plan: Plan) -> mx.array:
        """queries [rows, heads, d], keys and values [rows, kv_heads, d], rotated -> [rows, heads, d]."""
        self._storage.write(layer, plan.write_rows, keys, values)
        pages = PlainPages(self._storage.keys[layer], self._storage.values[layer])
        tables = self._tables_of(plan)
        parts = []
        if tables.singles is not None:
            parts.append(self._kernels.decode(queries[: len(tables.singles.tables)], pages, tables.singles))
        for chunk, table in zip(plan.chunks, tables.chunks, strict=True):
            rows = queries[chunk.first_row : chunk.first_row + chunk.num_rows]
            parts.append(self._kernels.prefill(rows, pages, table))
        return parts[0] if len(parts) == 1 else mx.concatenate(parts)

    def _tables_of(self, plan: Plan) -> PlanTables:
        if self._last is None or self._last.plan is not plan:
            self._last = PlanTables.of(plan, self._storage)
        return self._last
