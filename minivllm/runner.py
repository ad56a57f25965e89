"""ModelRunner: one forward pass over the work of a step. The only place where scheduling meets arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from minivllm.attention.plan import Plan, make_plan
from minivllm.backend import mx
from minivllm.cache.storage import KVStorage
from minivllm.models.decoder import Decoder
from minivllm.scheduler import Work

PagedAttention = Callable[[int, mx.array, mx.array, mx.array, Plan], mx.array]


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """`logits` [rows asked for, vocabulary] float32; `logit_rows[i]` are the rows of work i in it.

    `is_finite[i]` tells whether every hidden state and logit of work i is a number: NaN in its pages shows here.
    """

    logits: mx.array | None
    logit_rows: tuple[range, ...]
    is_finite: tuple[bool, ...]

    def rows(self, place: int) -> np.ndarray:
        """The logits of one work: [rows asked for, vocabulary] float32."""
        rows = self.logit_rows[place]
        if self.logits is None or len(rows) == 0:
            return np.empty((0, 0), np.float32)
        return np.array(self.logits[rows.start : rows.stop])


class ModelRunner:
    def __init__(self, decoder: Decoder, storage: KVStorage, attention: PagedAttention) -> None:
        self._decoder = decoder
        self._storage = storage
        self.attention = attention
        """Called once for each layer of a step. Whoever wants to watch it may put something in front between steps."""

    def forward(self, work: Sequence[Work]) -> ForwardResult:
        """Compute the work, store its KV, and return logits for the rows that need them."""
        plan = make_plan(work, self._storage)
        hidden = self._decoder(
            plan.token_ids,
            plan.positions,
            lambda layer, queries, keys, values: self.attention(layer, queries, keys, values, plan),
        )
        logit_rows, wanted = _logit_rows(work, plan)
        logits = self._decoder.logits(hidden[mx.array(wanted)]) if wanted else None
        checks = [_all_finite(hidden, plan.row_ranges)]
        if logits is not None:
            checks.append(_all_finite(logits, logit_rows))
        mx.eval(checks, *([] if logits is None else [logits]))
        is_finite = np.all([np.array(check) for check in checks], axis=0)
        return ForwardResult(logits, logit_rows, tuple(bool(finite) for finite in is_finite))

    def keys_and_values(self, work: Sequence[Work], num_layers: int) -> list[tuple[mx.array, mx.array]]:
        """What the first layers compute for this work before it is stored: keys, values [rows, num_kv_heads, head_dim].

        Rows are in the order of the work, if all of it is of one token or it is one chunk. With one layer nothing is
        written; with more, the pages hold the new keys and values of these positions afterwards.
        """
        plan, found = make_plan(work, self._storage), []

        def attend(layer: int, queries: mx.array, keys: mx.array, values: mx.array) -> mx.array:
            found.append((keys, values))
            if len(found) == num_layers:
                raise _EnoughError
            return self.attention(layer, queries, keys, values, plan)

        with contextlib.suppress(_EnoughError):
            self._decoder(plan.token_ids, plan.positions, attend)
        mx.eval(found)
        return found


class _EnoughError(Exception):
    """No further layer is wanted."""


def _all_finite(rows: mx.array, ranges: Sequence[range]) -> mx.array:
    """bool [ranges]: whether all rows of a range hold only numbers. An empty range does."""
    is_finite = mx.isfinite(rows).all(axis=-1)
    return mx.stack([is_finite[own.start : own.stop].all() for own in ranges])


def _logit_rows(work: Sequence[Work], plan: Plan) -> tuple[tuple[range, ...], list[int]]:
    """Rows of hidden states whose logits are wanted, and where each work finds its own among them."""
    wanted: list[int] = []
    ranges = []
    for item, rows in zip(work, plan.row_ranges, strict=True):
        own = rows if item.request.wants_all_logits else rows[-1:] if item.gives_next_token else rows[:0]
        ranges.append(range(len(wanted), len(wanted) + len(own)))
        wanted.extend(own)
    return tuple(ranges), wanted
