"""Where the bytes of pages are: rows of keys and rows of values per layer, allocated once.

Row `page_id * page_size + offset` is one token, [num_kv_heads, head_dim], whatever it takes to store it. The row behind
the last one is the null row, all zeros and never written: padding points there, so that no index ever leaves an array
and no stale value is read (an index outside is not an error in MLX; 0 x NaN is NaN even behind a mask).

Quantized pages and a head in full precision are two regions in one numbering, split at row S:

    rows of the pool        0 ...... full precision ...... S ........ quantized ........ N      N is the null row
    rows of a sequence      its first `head_pages` pages     | all pages behind
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minivllm.backend import is_cpu, mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.rows import DTYPES, FullRows, QuantizedRows
from minivllm.models.spec import ModelSpec


def resolve_kv_dtype(kv_dtype: str, weights_dtype: mx.Dtype) -> str:
    """ "auto" is float32 on a CPU, where 16-bit products are slow, and the dtype of the weights elsewhere."""
    if kv_dtype != "auto":
        return kv_dtype
    if is_cpu:
        return "float32"
    return next((name for name, dtype in DTYPES.items() if dtype == weights_dtype), "float16")


class RegionedRows:
    """Keys, or values, of one layer: full precision rows below `split`, quantized ones from there on."""

    def __init__(self, spec: ModelSpec, num_rows: int, split: int, kv_format: KVFormat) -> None:
        shape = spec.num_kv_heads, spec.head_dim
        self._split = split
        self.full = FullRows(split, *shape, kv_format) if split else None
        self.quantized = QuantizedRows(num_rows - split, *shape, kv_format) if split < num_rows else None
        self._only = None if self.full and self.quantized else self.full or self.quantized

    @property
    def arrays(self) -> list[mx.array]:
        return [array for region in (self.full, self.quantized) if region is not None for array in region.arrays]

    def write(self, rows: mx.array, values: mx.array) -> None:
        if self._only is not None:
            self._only.write(rows, values)
            return
        assert self.full is not None and self.quantized is not None
        is_full = np.array(rows) < self._split
        for region, chosen in ((self.full, is_full), (self.quantized, ~is_full)):
            places = mx.array(np.flatnonzero(chosen))
            if places.size:
                region.write(self._local(region, rows[places]), values[places])

    def read(self, rows: mx.array, num_head_columns: int) -> mx.array:
        """`rows` [..., context]; where there are both regions, the first `num_head_columns` are in full precision."""
        if self._only is not None:
            return self._only.read(rows)
        assert self.full is not None and self.quantized is not None
        head = self.full.read(self._local(self.full, rows[..., :num_head_columns]))
        if rows.shape[-1] <= num_head_columns:
            return head
        body = self.quantized.read(self._local(self.quantized, rows[..., num_head_columns:]))
        return mx.concatenate([head, body], axis=-3)

    def poison(self, rows: np.ndarray) -> None:
        for region, chosen in ((self.full, rows < self._split), (self.quantized, rows >= self._split)):
            if region is not None and chosen.any():
                region.poison(self._local(region, mx.array(rows[chosen])))

    def stored(self, rows: mx.array) -> list[mx.array]:
        """What is stored at these rows, which are of one region, array by array."""
        region = self._region_of(rows)
        return [array[self._local(region, rows)] for array in region.arrays]

    def put(self, rows: mx.array, arrays: Sequence[mx.array]) -> None:
        """The reverse of `stored`."""
        region = self._region_of(rows)
        region.put(self._local(region, rows), arrays)

    def _region_of(self, rows: mx.array) -> FullRows | QuantizedRows:
        region = self.full if self.full is not None and int(rows.min()) < self._split else self.quantized
        assert region is not None
        return region

    def _local(self, region: FullRows | QuantizedRows, rows: mx.array) -> mx.array:
        """Rows of the pool as rows of a region; the null row of the pool becomes that of the region."""
        return mx.minimum(rows, self._split) if region is self.full else rows - self._split


class KVStorage:
    """Keys and values of `num_pages` pages in every layer.

    With `kv_format.bits` None all are in full precision; else the first `num_full_pages` are, and the rest quantized.
    """

    def __init__(
        self, spec: ModelSpec, num_pages: int, page_size: int, kv_format: KVFormat, num_full_pages: int = 0
    ) -> None:
        kv_format.check_head(spec.head_dim)
        self.num_pages = num_pages
        self.page_size = page_size
        self.kv_format = kv_format
        self.num_kv_heads, self.head_dim = spec.num_kv_heads, spec.head_dim
        self.null_row = num_pages * page_size
        self._num_head_columns = kv_format.head_pages * page_size
        self._split = split = self.null_row if kv_format.bits is None else num_full_pages * page_size
        self._keys, self._values = (
            [RegionedRows(spec, self.null_row, split, kv_format) for _ in range(spec.num_layers)] for _ in range(2)
        )
        mx.eval([layer.arrays for layer in self.layers])

    @property
    def has_two_precisions(self) -> bool:
        return 0 < self._split < self.null_row

    def rows_of_layer(self, layer: int) -> tuple[RegionedRows, RegionedRows]:
        """Keys and values of one layer."""
        return self._keys[layer], self._values[layer]

    @property
    def layers(self) -> list[RegionedRows]:
        """Keys of every layer, then values of every layer."""
        return [*self._keys, *self._values]

    @property
    def is_quantized(self) -> bool:
        return self.kv_format.bits is not None

    def is_full_precision(self, page_id: int) -> bool:
        """The precision of a page is told by its id."""
        return page_id * self.page_size < self._split

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for layer in self.layers for array in layer.arrays)

    @property
    def keys(self) -> list[mx.array]:
        """The key array of each layer: of full precision storage, where a row is one element of one array."""
        return [layer.full.array for layer in self._keys if layer.full is not None]

    @property
    def values(self) -> list[mx.array]:
        return [layer.full.array for layer in self._values if layer.full is not None]

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
        self._keys[layer].write(rows, keys)
        self._values[layer].write(rows, values)

    def read_keys(self, layer: int, rows: mx.array, first_column: int = 0) -> mx.array:
        """Keys at `rows` [..., context], as stored or dequantized: [..., context, num_kv_heads, head_dim].

        `rows` are rows of sequences from token `first_column` on, padded with the null row.
        """
        return self._keys[layer].read(rows, max(0, self._num_head_columns - first_column))

    def read_values(self, layer: int, rows: mx.array, first_column: int = 0) -> mx.array:
        return self._values[layer].read(rows, max(0, self._num_head_columns - first_column))

    def poison(self, page_ids: Sequence[int]) -> None:
        """Overwrite pages with NaN: whoever reads a page without having written it will notice."""
        if not page_ids:
            return
        rows = np.concatenate([self.rows_of([page_id], self.page_size) for page_id in page_ids])
        for layer in self.layers:
            layer.poison(rows)
        mx.eval([layer.arrays for layer in self.layers])

    def page_arrays(self, page_id: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """A page's keys and values per layer, copied: [page_size, num_kv_heads, head_dim] each, as float32."""
        rows = mx.array(self.rows_of([page_id], self.page_size))
        num_full_columns = self.page_size if self.is_full_precision(page_id) else 0
        parts = [layer.read(rows, num_full_columns).astype(mx.float32) for layer in self.layers]
        keys, values = parts[: len(self._keys)], parts[len(self._keys) :]
        return [(np.array(one), np.array(other)) for one, other in zip(keys, values, strict=True)]

    def page_bytes(self, page_id: int) -> bytes:
        """Everything that is stored for one page, as it is stored: equal bytes, equal page."""
        rows = mx.array(self.rows_of([page_id], self.page_size))
        return b"".join(np.array(part.view(mx.uint8)).tobytes() for layer in self.layers for part in layer.stored(rows))

    def close(self) -> None:
        """Free the arrays."""
        self._keys, self._values = [], []
