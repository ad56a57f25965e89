"""Small paged caches to attend to, and the answer in float64.

Every slot that a case does not fill holds NaN: whoever reads one shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minivllm.attention.paged_kernels import MakeKernel
from minivllm.attention.pages import PageTables, PlainPages, QuantizedPages
from minivllm.backend import is_cpu, mx
from minivllm.metal.cuda import cuda_kernel
from minivllm.metal.runner import metal_kernel
from minivllm.models.spec import ModelSpec

# Everywhere in the runner, and on the GPU of the machine, if it has one.
KERNEL_MAKERS: dict[str, MakeKernel] = {"runner": metal_kernel}
if not is_cpu:
    KERNEL_MAKERS |= {"Metal": mx.fast.metal_kernel} if mx.metal.is_available() else {"CUDA": cuda_kernel}

SPEC = ModelSpec(
    family="llama",
    num_layers=1,
    hidden_size=64,
    intermediate_size=1,
    num_heads=1,
    num_kv_heads=1,
    head_dim=64,
    vocab_size=1,
    rms_norm_eps=1e-5,
    rope_theta=1e4,
    max_position_embeddings=1,
)


@dataclass(frozen=True)
class Case:
    """Queries [rows, heads, d] and keys and values [slots, kv_heads, d], as float32 arrays of NumPy."""

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    tables: list[list[int]]
    num_tokens: list[int]
    page_size: int
    dtype: mx.Dtype

    @property
    def page_tables(self) -> PageTables:
        return PageTables(self.tables, self.num_tokens, self.keys.shape[0] // self.page_size, self.page_size)

    @property
    def pages(self) -> PlainPages:
        return PlainPages(mx.array(self.keys).astype(self.dtype), mx.array(self.values).astype(self.dtype))

    @property
    def query_array(self) -> mx.array:
        return mx.array(self.queries).astype(self.dtype)


def rounded(values: np.ndarray, dtype: mx.Dtype) -> np.ndarray:
    return np.array(mx.array(values.astype(np.float32)).astype(dtype).astype(mx.float32))


def make_case(
    num_tokens: Sequence[int],
    *,
    rows: int | None = None,
    heads: int = 3,
    kv_heads: int = 1,
    head_dim: int = 64,
    page_size: int = 16,
    dtype: mx.Dtype = mx.float32,
    shared_pages: int = 0,
    seed: int = 0,
) -> Case:
    """One query row for each context, or `rows` for a chunk. Page ids are shuffled; the first pages may be shared."""
    random = np.random.default_rng(seed)
    needed = [-(-tokens // page_size) for tokens in num_tokens]
    ids = random.permutation(sum(needed) + 1).tolist()  # one page that nobody uses
    tables = []
    for count in needed:
        common = tables[0][:shared_pages] if tables else []
        tables.append([*common, *(ids.pop() for _ in range(count - len(common)))])
    slots = np.full(((sum(needed) + 1) * page_size, kv_heads, head_dim), np.nan, np.float32)
    keys, values = slots.copy(), slots.copy()
    for table, tokens in zip(tables, num_tokens, strict=True):
        used = slots_of(table, tokens, page_size)
        keys[used] = rounded(random.normal(size=keys[used].shape), dtype)
        values[used] = rounded(random.normal(size=keys[used].shape), dtype)
    # Larger than one, so that the softmax has something to choose.
    queries = rounded(2 * random.normal(size=(rows or len(num_tokens), heads, head_dim)), dtype)
    return Case(queries, keys, values, tables, list(num_tokens), page_size, dtype)


def slots_of(table: Sequence[int], num_tokens: int, page_size: int) -> np.ndarray:
    return (np.array(table)[:, None] * page_size + np.arange(page_size)).reshape(-1)[:num_tokens]


def answer(case: Case) -> np.ndarray:
    """float64 [rows, heads, d]: softmax(q k / sqrt(d)) v over what each row sees, written as the formula is."""
    out = np.zeros(case.queries.shape)
    rows, heads, head_dim = case.queries.shape
    for row in range(rows):
        decode = len(case.num_tokens) == rows
        table = case.tables[row if decode else 0]
        seen = case.num_tokens[row] if decode else case.num_tokens[0] - rows + 1 + row
        used = slots_of(table, seen, case.page_size)
        for head in range(heads):
            kv_head = head * case.keys.shape[1] // heads
            keys, values = (array[used, kv_head].astype(np.float64) for array in (case.keys, case.values))
            scores = keys @ case.queries[row, head] / head_dim**0.5
            weights = np.exp(scores - scores.max())
            out[row, head] = weights @ values / weights.sum()
    return out


def quantized(case: Case, bits: int, group_size: int) -> tuple[Case, QuantizedPages]:
    """The case with its keys and values quantized, and what is left of them as its new keys and values."""
    pairs = []
    for plain in (case.keys, case.values):
        filled = np.isfinite(plain)
        packed, scales, biases = mx.quantize(
            mx.array(np.where(filled, plain, 0)).astype(case.dtype), group_size=group_size, bits=bits
        )
        # In float32, as the kernel does it: mx.dequantize rounds every element to the dtype of the scales.
        back = mx.dequantize(
            packed, *(a.astype(mx.float32) for a in (scales, biases)), group_size=group_size, bits=bits
        )
        # What nobody may read is poisoned in its scales: packed numbers cannot be NaN.
        poison = mx.array(~filled.all(axis=-1)[..., None])
        scales = mx.where(poison, mx.array(float("nan"), scales.dtype), scales)
        pairs.append(((packed, scales, biases), np.where(filled, np.array(back), np.nan)))
    (keys, plain_keys), (values, plain_values) = pairs
    pages = QuantizedPages(keys, values, bits, group_size)
    changed = Case(case.queries, plain_keys, plain_values, case.tables, case.num_tokens, case.page_size, case.dtype)
    return changed, pages


def largest_error(got: mx.array, case: Case) -> float:
    """NaN when anything is not a number."""
    return float(np.abs(np.array(got.astype(mx.float32)).astype(np.float64) - answer(case)).max())
