"""The plan of one forward pass: which rows it has, where their KV goes, and what each may see.

    rows      [ one-token work: decode, last prompt tokens | chunk of A ........ | chunk of B .... ]
    positions [ 37  5  812                                 | 0 1 2 ...           | 64 65 66 ...    ]

Made once, used by every layer. Work of a single token is attended in one padded batch; each longer chunk by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minivllm.backend import mx
from minivllm.cache.storage import KVStorage
from minivllm.scheduler import Work


@dataclass(frozen=True, slots=True)
class SingleRows:
    """One-token work: row i sees `context_rows[i]` [longest context], of which `visible` [i] marks the valid ones.

    Those are the first `num_tokens[i]` tokens of `page_tables[i]`.
    """

    num_rows: int
    context_rows: mx.array
    visible: mx.array
    page_tables: tuple[tuple[int, ...], ...]
    num_tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence, from `first_row` on; row i sees the first `start + i + 1` context rows."""

    first_row: int
    num_rows: int
    start: int
    context_rows: mx.array
    page_table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    token_ids: mx.array
    positions: mx.array
    write_rows: mx.array
    singles: SingleRows | None
    chunks: tuple[Chunk, ...]
    row_ranges: tuple[range, ...]
    """Rows of each work, in the order the work was given."""


def make_plan(work: Sequence[Work], storage: KVStorage) -> Plan:
    """Every index is checked here, in Python, before an array sees it."""
    contexts = [storage.rows_of(item.request.page_table, item.end) for item in work]
    order = sorted(range(len(work)), key=lambda i: work[i].num_tokens > 1)
    row_ranges: list[range] = [range(0)] * len(work)
    num_rows = 0
    for i in order:
        row_ranges[i] = range(num_rows, num_rows + work[i].num_tokens)
        num_rows += work[i].num_tokens
    return Plan(
        token_ids=mx.array(np.concatenate([np.asarray(work[i].token_ids, np.int32) for i in order])),
        positions=mx.array(np.concatenate([np.arange(work[i].start, work[i].end, dtype=np.int32) for i in order])),
        write_rows=mx.array(np.concatenate([contexts[i][work[i].start :] for i in order])),
        singles=_singles(
            [contexts[i] for i in order if work[i].num_tokens == 1],
            tuple(tuple(work[i].request.page_table) for i in order if work[i].num_tokens == 1),
            storage.null_row,
        ),
        chunks=tuple(
            Chunk(
                first_row=row_ranges[i].start,
                num_rows=work[i].num_tokens,
                start=work[i].start,
                context_rows=mx.array(contexts[i]),
                page_table=tuple(work[i].request.page_table),
            )
            for i in order
            if work[i].num_tokens > 1
        ),
        row_ranges=tuple(row_ranges),
    )


def _singles(contexts: list[np.ndarray], page_tables: tuple[tuple[int, ...], ...], null_row: int) -> SingleRows | None:
    if not contexts:
        return None
    lengths = np.array([len(context) for context in contexts])
    padded = np.full((len(contexts), lengths.max()), null_row, np.int32)
    for row, context in zip(padded, contexts, strict=True):
        row[: len(context)] = context
    return SingleRows(
        num_rows=len(contexts),
        context_rows=mx.array(padded),
        visible=mx.array(np.arange(lengths.max()) < lengths[:, None]),
        page_tables=page_tables,
        num_tokens=tuple(lengths.tolist()),
    )
