"""Attention that reads pages where they are, by the kernels of minivllm/metal/paged_attention.metal.

Nothing is gathered: a step moves the keys and values that its rows may see, once for each query head or tile of
queries, and no copy of them. The kernels run on an Apple GPU, or very slowly in the runner (minivllm/metal/runner.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minivllm.attention.paged_kernels import MakeKernel, PagedKernels
from minivllm.attention.pages import Pages, PageTables, PlainPages, QuantizedPages
from minivllm.attention.plan import Plan
from minivllm.backend import mx
from minivllm.cache.storage import KVStorage

FEW_ROWS = 16
"""A chunk of so few rows has too few tiles to fill a GPU; its rows are attended one by one, as decode rows are.

From the number of threadgroups, not from a measurement: nobody has run this on a Mac yet.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a plan that one launch attends for, and their page tables: one for each row, or one for a chunk."""

    rows: slice
    tables: PageTables
    is_chunk: bool


class MetalAttention:
    """Writes a step's keys and values into their pages, then attends to the pages themselves."""

    def __init__(self, storage: KVStorage, make_kernel: MakeKernel = mx.fast.metal_kernel) -> None:
        self._storage = storage
        self._kernels = PagedKernels(make_kernel)
        self._last: tuple[Plan, tuple[Part, ...]] | None = None

    def __call__(self, layer: int, queries: mx.array, keys: mx.array, values: mx.array, plan: Plan) -> mx.array:
        """queries [rows, heads, d], keys and values [rows, kv_heads, d], rotated -> [rows, heads, d]."""
        self._storage.write(layer, plan.write_rows, keys, values)
        pages = pages_of(self._storage, layer)
        answers = []
        for part in self._parts_of(plan):
            attend = self._kernels.prefill if part.is_chunk else self._kernels.decode
            answers.append(attend(queries[part.rows], pages, part.tables))
        return answers[0] if len(answers) == 1 else mx.concatenate(answers)

    def _parts_of(self, plan: Plan) -> tuple[Part, ...]:
        """Made, and its page ids checked, once for all layers of a step."""
        if self._last is None or self._last[0] is not plan:
            self._last = plan, parts_of(plan, self._storage)
        return self._last[1]


def pages_of(storage: KVStorage, layer: int) -> Pages:
    """The arrays of one layer, as they are stored, in one precision."""
    keys, values = storage.rows_of_layer(layer)
    if keys.full is not None and values.full is not None:
        return PlainPages(keys.full.array, values.full.array)
    bits, group_size = storage.kv_format.bits, storage.kv_format.group_size
    assert keys.quantized is not None and values.quantized is not None and bits is not None and group_size is not None
    return QuantizedPages(keys.quantized.triple, values.quantized.triple, bits, group_size)


def parts_of(plan: Plan, storage: KVStorage) -> tuple[Part, ...]:
    """In the order of the plan's rows: the one-token rows together, then each chunk."""

    def tables(page_tables: Sequence[Sequence[int]], num_tokens: Sequence[int]) -> PageTables:
        return PageTables(page_tables, num_tokens, storage.num_pages, storage.page_size)

    parts = []
    if plan.singles is not None:
        singles = tables(plan.singles.page_tables, plan.singles.num_tokens)
        parts.append(Part(slice(0, plan.singles.num_rows), singles, is_chunk=False))
    for chunk in plan.chunks:
        rows = slice(chunk.first_row, chunk.first_row + chunk.num_rows)
        seen = range(chunk.start + 1, chunk.start + chunk.num_rows + 1)
        if chunk.num_rows <= FEW_ROWS:
            parts.append(Part(rows, tables([chunk.page_table] * chunk.num_rows, seen), is_chunk=False))
        else:
            parts.append(Part(rows, tables([chunk.page_table], seen[-1:]), is_chunk=True))
    return tuple(parts)
