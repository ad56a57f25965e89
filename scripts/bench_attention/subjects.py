"""The three ways to attend that are compared, each taking one decode step through all layers.

All write one new token for each row and attend to everything up to it; a layer's answer is the next layer's query, so
that a step is one chain of work, as in a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mlx_lm.models.base import scaled_dot_product_attention
from mlx_lm.models.cache import KVCache

from minivllm.attention.metal import MetalAttention
from minivllm.attention.paged_kernels import MakeKernel
from minivllm.attention.plan import Plan, make_plan
from minivllm.attention.portable import PortableAttention
from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.rows import DTYPES
from minivllm.cache.storage import KVStorage
from minivllm.config import SamplingParams
from minivllm.models.spec import ModelSpec
from minivllm.request import Request
from minivllm.scheduler import Work


@dataclass(frozen=True)
class Shape:
    """One decode step: `rows` sequences of equal length through `layers` layers. Defaults are SmolLM2-135M's."""

    rows: int = 1
    layers: int = 30
    heads: int = 9
    kv_heads: int = 3
    head_dim: int = 64
    page_size: int = 16
    dtype: str = "float16"

    def kv_bytes(self, context: int) -> int:
        """Keys and values that a step must read: rows x layers x context x 2 x KV heads x head size x bytes."""
        return self.rows * self.layers * context * 2 * self.kv_heads * self.head_dim * DTYPES[self.dtype].size

    @property
    def spec(self) -> ModelSpec:
        return ModelSpec(
            family="llama",
            num_layers=self.layers,
            hidden_size=self.heads * self.head_dim,
            intermediate_size=1,
            num_heads=self.heads,
            num_kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            vocab_size=1,
            rms_norm_eps=1e-5,
            rope_theta=10000.0,
            max_position_embeddings=1,
        )


@dataclass(frozen=True)
class Subject:
    """`step()` queues one step and returns its last answer [rows, heads, head_dim], not yet evaluated.

    `times_moved` is how often the keys and values of the context pass through memory in a step, at the least.
    """

    name: str
    times_moved: int
    step: Callable[[], mx.array]


def make_subjects(shape: Shape, context: int, make_kernel: MakeKernel) -> list[Subject]:
    """The same random numbers for all of them."""
    random = np.random.default_rng(0)

    def numbers(*dimensions: int) -> mx.array:
        return mx.array(random.standard_normal(dimensions, dtype=np.float32)).astype(DTYPES[shape.dtype])

    cached = [[numbers(shape.rows, context, shape.kv_heads, shape.head_dim) for _ in "kv"] for _ in range(shape.layers)]
    queries = numbers(shape.rows, shape.heads, shape.head_dim)
    storage, plan = _filled(shape, context, cached)

    def paged(attend: MetalAttention | PortableAttention) -> Callable[[], mx.array]:
        def step() -> mx.array:
            out = queries
            for layer, (keys, values) in enumerate(cached):
                out = attend(layer, out, keys[:, -1], values[:, -1], plan)
            return out

        return step

    return [
        Subject("paged kernel", 1, paged(MetalAttention(storage, make_kernel))),
        # The gather reads the pages and writes a copy, which the fused kernel reads.
        Subject("gather, then fused", 3, paged(PortableAttention(storage, fused=True))),
        Subject("mlx-lm, contiguous", 1, _contiguous(cached, queries)),
    ]


def _filled(shape: Shape, context: int, cached: list[list[mx.array]]) -> tuple[KVStorage, Plan]:
    """A pool that holds everything but the last token of each row, on shuffled pages, and the plan of the step."""
    pages_of_row = -(-context // shape.page_size)
    storage = KVStorage(shape.spec, shape.rows * pages_of_row, shape.page_size, KVFormat(shape.dtype))
    ids = np.random.default_rng(1).permutation(storage.num_pages).reshape(shape.rows, pages_of_row)
    work = []
    for row, table in enumerate(ids.tolist()):
        request = Request(f"row-{row}", [0] * context, SamplingParams(max_tokens=1), None, 0.0)
        request.page_table = table
        work.append(Work(request, context - 1, context))
        slots = mx.array(storage.rows_of(table, context))
        for layer, (keys, values) in enumerate(cached):
            storage.write(layer, slots, keys[row], values[row])
    mx.eval(storage.keys, storage.values)
    return storage, make_plan(work, storage)


def _contiguous(cached: list[list[mx.array]], queries: mx.array) -> Callable[[], mx.array]:
    """mlx-lm's cache of one batch; its last token is taken back and written again in every step."""
    rows, heads, head_dim = queries.shape
    by_head = [[array.transpose(0, 2, 1, 3) for array in layer] for layer in cached]
    caches = [KVCache() for _ in cached]
    for cache, (keys, values) in zip(caches, by_head, strict=True):
        mx.eval(cache.update_and_fetch(keys, values))

    def step() -> mx.array:
        out = queries[:, :, None]
        for cache, (keys, values) in zip(caches, by_head, strict=True):
            cache.trim(1)
            everything = cache.update_and_fetch(keys[:, :, -1:], values[:, :, -1:])
            out = scaled_dot_product_attention(out, *everything, cache=cache, scale=head_dim**-0.5, mask=None)
        return out.reshape(rows, heads, head_dim)

    return step
