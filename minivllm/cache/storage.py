"""Where the bytes of pages are: one array of keys and one of values per layer, allocated once.

Row `page_id * page_size + offset` of every array is one token, shape [num_kv_heads, head_dim]. One more row, the null
row, is all zeros and never written: padding points there, so that no index ever leaves an array and no stale value is
read (an index outside is not an error in MLX; 0 x NaN is NaN even behind a mask).

One array per layer, because `array[rows] = values` happens in place only while the buffer has a single owner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minivllm.backend import is_cpu, mx
from minivllm.models.spec import ModelSpec

DTYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


def resolve_kv_dtype(kv_dtype: str, weights_dtype: mx.Dtype) -> str:
    """ "auto" is float32 on a CPU, where 16-bit products are slow, and the dtype of the weights elsewhere."""
    if kv_dtype != "auto":
        return kv_dtype
    if is_cpu:
        return "float32"
    return next((name for name, dtype in DTYPES.items() if dtype == weights_dtype), "float16")


def bytes_per_page(spec: ModelSpec, page_size: int, kv_dtype: str) -> int:
    """2 (keys and values) x layers x KV heads x head size x page size x bytes of the dtype."""
    return 2 * spec.num_layers * spec.num_kv_heads * spec.head_dim * page_size * DTYPES[kv_dtype].size


class KVStorage:
    """Keys and values of `num_pages` pages in every layer."""

    def __init__(self, spec: ModelSpec, num_pages: int, page_size: int, kv_dtype: str) -> None:
        self.num_pages = num_pages
        self.page_size = page_size
        self.kv_dtype = kv_dtype
        self.null_row = num_pages * page_size
        shape = (self.null_row + 1, spec.num_kv_heads, spec.head_dim)
        self.keys = [mx.zeros(shape, DTYPES[kv_dtype]) for _ in range(spec.num_layers)]
        self.values = [mx.zeros(shape, DTYPES[kv_dtype]) for _ in range(spec.num_layers)]
        mx.eval(self.keys, self.values)

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in (*self.keys, *self.values))

    def rows_of(self, page_table: Sequence[int], num_tokens: int) -> np.ndarray:
        """Rows of a sequence's first tokens, int32 [num_tokens]. IndexError on a bad page id or a short table."""
        pages = np.asarray(page_table, dtype=np.int64)
        if len(pages) * self.page_size < num_tokens:
            raise IndexError(f"a page table of {len(pages)} pages does not hold {num_tokens} tokens")
        if len(pages) and not (pages.min() >= 0 and pages.max() < self.num_pages):
            raise IndexError(f"page table {list(page_table)} leaves the pool of {self.num_pages} pages")
        rows = pages[:, None] * self.page_size + np.arange(self.page_size)
        return rows.reshape(-1)[:num_tokens].astype(np.int32)

    def write(self, layer: int, rows: mx.array, keys: mx.array, values: mx.array) -> None:
        """Store keys and values [tokens, num_kv_heads, head_dim] at `rows` [tokens], in place."""
        self.keys[layer][rows] = keys.astype(self.keys[layer].dtype)
        self.values[layer][rows] = values.astype(self.values[layer].dtype)

    def read(self, layer: int, rows: mx.array) -> tuple[mx.array, mx.array]:
        """Keys and values at `rows` [...], as stored: [..., num_kv_heads, head_dim] each."""
        return self.keys[layer][rows], self.values[layer][rows]

    def poison(self, page_ids: Sequence[int]) -> None:
        """Overwrite pages with NaN: whoever reads a page without having written it will notice."""
        if not page_ids:
            return
        rows = mx.array(np.concatenate([self.rows_of([page_id], self.page_size) for page_id in page_ids]))
        for arrays in (self.keys, self.values):
            for array in arrays:
                array[rows] = mx.array(float("nan"), array.dtype)
        mx.eval(self.keys, self.values)

    def page_arrays(self, page_id: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """A page's keys and values per layer, copied: [page_size, num_kv_heads, head_dim] each, as float32."""
        rows = mx.array(self.rows_of([page_id], self.page_size))
        pairs = [self.read(layer, rows) for layer in range(len(self.keys))]
        return [(np.array(keys.astype(mx.float32)), np.array(values.astype(mx.float32))) for keys, values in pairs]
