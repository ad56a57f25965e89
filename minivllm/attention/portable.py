"""Attention over pages in plain MLX: gather the rows a query may see, then two products and a softmax between them.

Reads what is stored, for the current chunk too, so that a result does not depend on where a chunk or a hit begins.
On a GPU the gathered rows go to MLX's fused kernel. On a CPU that kernel is slower than two products with a fast
exponential (118 against 48 ms for 9 heads, 512 queries, 1,024 keys), and tiles that fit the cache are faster still.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from minivllm.attention.plan import Chunk, Plan, SingleRows
from minivllm.backend import is_cpu, mx
from minivllm.cache.storage import KVStorage
from minivllm.fastmath import exp

TILE_SCORES = 2**20
"""Scores computed at a time: 4 MiB of float32."""
MAX_TILE_QUERIES = 128
BLOCK_COLUMNS = 512
"""Tokens of quantized context that are dequantized at a time when decoding."""

Attend = Callable[[mx.array, mx.array, mx.array, "mx.array | None"], mx.array]
"""queries [batch, heads, rows, d], keys and values [batch, kv_heads, context, d] -> like queries.

`visible`, bool, speaks of the last keys only, broadcast to [batch, heads, rows, last keys]: every row sees all keys
before those. None: every row sees everything.
"""


class PortableAttention:
    """Writes a step's keys and values into their pages and attends to everything each row may see."""

    def __init__(self, storage: KVStorage, *, fused: bool = not is_cpu) -> None:
        self._storage = storage
        self._attend: Attend = attend_fused if fused else attend_with_products
        self._by_block = storage.is_quantized and not fused

    def __call__(self, layer: int, queries: mx.array, keys: mx.array, values: mx.array, plan: Plan) -> mx.array:
        """queries [rows, heads, d], keys and values [rows, kv_heads, d], scaled and rotated -> [rows, heads, d]."""
        self._storage.write(layer, plan.write_rows, keys, values)
        parts = []
        if plan.singles is not None:
            parts.append(self._attend_singles(layer, queries[: plan.singles.num_rows], plan.singles))
        for chunk in plan.chunks:
            rows = queries[chunk.first_row : chunk.first_row + chunk.num_rows]
            parts.append(self._attend_chunk(layer, rows, chunk))
        return parts[0] if len(parts) == 1 else mx.concatenate(parts)

    def _attend_singles(self, layer: int, queries: mx.array, singles: SingleRows) -> mx.array:
        if self._by_block:
            return self._attend_singles_by_block(layer, queries, singles)
        keys, values = self._read(layer, singles.context_rows, queries.dtype)
        visible = None if singles.num_rows == 1 else singles.visible[:, None, None, :]
        return self._attend(queries[:, :, None], keys, values, visible)[:, :, 0]

    def _attend_singles_by_block(self, layer: int, queries: mx.array, singles: SingleRows) -> mx.array:
        """Quantized pages: one block of the context is dequantized at a time, so that no layer is in memory whole.

        Online softmax (Milakov and Gimelshein, https://arxiv.org/abs/1805.02867): what was summed under a lower
        maximum is scaled down when a higher one is found.
        """
        num_rows, num_heads, head_dim = queries.shape
        grouped = (queries * head_dim**-0.5).reshape(num_rows, self._storage.num_kv_heads, -1, head_dim)
        highest = mx.full((*grouped.shape[:3], 1), -mx.inf)
        total, out = mx.zeros_like(highest), mx.zeros_like(grouped)
        for first in range(0, singles.context_rows.shape[1], BLOCK_COLUMNS):
            block = slice(first, first + BLOCK_COLUMNS)
            # Without this MLX would dequantize several blocks before it uses the first.
            (rows,) = mx.depends([singles.context_rows[:, block]], [out])
            keys = self._storage.read_keys(layer, rows, first).astype(queries.dtype).transpose(0, 2, 3, 1)
            scores = mx.where(singles.visible[:, None, None, block], grouped @ keys, -mx.inf)
            before, highest = highest, mx.maximum(highest, scores.max(axis=-1, keepdims=True))
            (rows,) = mx.depends([rows], [highest])
            values = self._storage.read_values(layer, rows, first).astype(queries.dtype).transpose(0, 2, 1, 3)
            weights, shrink = exp(scores - highest), mx.exp(before - highest)
            total = total * shrink + weights.sum(axis=-1, keepdims=True)
            out = out * shrink + weights @ values
        return (out / total).reshape(num_rows, num_heads, head_dim)

    def _attend_chunk(self, layer: int, queries: mx.array, chunk: Chunk) -> mx.array:
        # Laid out head by head once, so that the products of the tiles do not copy them again.
        keys, values = map(mx.contiguous, self._read(layer, chunk.context_rows[None], queries.dtype))
        num_heads = queries.shape[1]
        largest = max(16, min(MAX_TILE_QUERIES, TILE_SCORES // (num_heads * keys.shape[2])))
        tile = -(-chunk.num_rows // -(-chunk.num_rows // largest))  # as few tiles as that allows, of equal size
        parts = []
        for first in range(0, chunk.num_rows, tile):
            last = min(first + tile, chunk.num_rows)
            context = chunk.start + last
            rows = queries[first:last].transpose(1, 0, 2)[None]
            triangle = mx.tril(mx.ones((last - first, last - first), mx.bool_))
            out = self._attend(rows, keys[:, :, :context], values[:, :, :context], triangle)
            parts.append(out[0].transpose(1, 0, 2))
        return parts[0] if len(parts) == 1 else mx.concatenate(parts)

    def _read(self, layer: int, rows: mx.array, dtype: mx.Dtype) -> tuple[mx.array, mx.array]:
        """Gathered keys and values [batch, kv_heads, context, d]."""
        keys, values = self._storage.read_keys(layer, rows), self._storage.read_values(layer, rows)
        return keys.astype(dtype).transpose(0, 2, 1, 3), values.astype(dtype).transpose(0, 2, 1, 3)


def attend_fused(queries: mx.array, keys: mx.array, values: mx.array, visible: mx.array | None) -> mx.array:
    """MLX's own kernel; its mask must cover every key."""
    if visible is not None and visible.shape[-1] < keys.shape[2]:
        free = mx.ones((*visible.shape[:-1], keys.shape[2] - visible.shape[-1]), mx.bool_)
        visible = mx.concatenate([free, visible], axis=-1)
    return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=queries.shape[-1] ** -0.5, mask=visible)


def attend_with_products(queries: mx.array, keys: mx.array, values: mx.array, visible: mx.array | None) -> mx.array:
    """Query heads that share a KV head become rows of one product, so a KV head is read once.

    Keys that every row sees and keys behind the mask are two blocks of one softmax: a mask over all scores would cost
    as much as the exponential.
    """
    num_kv_heads, context, head_dim = keys.shape[1:]
    num_masked = 0 if visible is None else visible.shape[-1]
    grouped = (queries * head_dim**-0.5).reshape(len(queries), num_kv_heads, -1, head_dim)
    blocks = []
    if num_masked < context:
        free = slice(0, context - num_masked)
        blocks.append((grouped @ keys[:, :, free].swapaxes(2, 3), values[:, :, free]))
    if visible is not None:
        last = slice(context - num_masked, context)
        scores = grouped @ keys[:, :, last].swapaxes(2, 3)
        per_row = scores.reshape(*queries.shape[:3], num_masked)
        blocks.append((mx.where(visible, per_row, -mx.inf).reshape(scores.shape), values[:, :, last]))
    return _softmax_product(blocks).reshape(queries.shape)


def _softmax_product(blocks: list[tuple[mx.array, mx.array]]) -> mx.array:
    """softmax over the scores of all blocks, times their values; blocks are (scores [..., n], values [..., n, d])."""
    highest = reduce(mx.maximum, [mx.max(scores, axis=-1, keepdims=True) for scores, _ in blocks])
    weighted = [(exp(scores - highest), values) for scores, values in blocks]
    out = reduce(mx.add, [weights @ values for weights, values in weighted])
    # A product sums faster than `sum`.
    total = reduce(mx.add, [weights @ mx.ones((weights.shape[-1], 1), weights.dtype) for weights, _ in weighted])
    return out / total
