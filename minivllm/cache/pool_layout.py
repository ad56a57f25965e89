"""How a page pool is divided, and what its pages cost. No tensors.

Without `quantized_kv_start` all pages are alike. With it a part of the pool is in full precision, for the heads of
sequences: room for twice as many heads as requests may run at once, so that those of finished requests can stay
cached, but at most half of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minivllm.cache.kv_format import KVFormat, KVFormatError
from minivllm.config import GIB, ConfigError, EngineConfig, default_kv_cache_bytes, physical_memory_bytes
from minivllm.models.spec import ModelSpec

HEADS_PER_ACTIVE_REQUEST = 2


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """`bytes_per_page` is that of a page behind the head, `bytes_per_head_page` that of one in full precision."""

    kv_format: KVFormat
    page_size: int
    num_pages: int
    num_head_pages: int
    bytes_per_page: int
    bytes_per_head_page: int

    @property
    def num_bytes(self) -> int:
        return self.num_head_pages * self.bytes_per_head_page + self.num_body_pages * self.bytes_per_page

    @property
    def num_body_pages(self) -> int:
        return self.num_pages - self.num_head_pages

    def one_sequence(self, page_ids: Sequence[int]) -> list[int]:
        """The longest page table that can be made of these pages: the ids below `num_head_pages` are heads."""
        heads = [page_id for page_id in page_ids if page_id < self.num_head_pages][: self.kv_format.head_pages]
        body = [page_id for page_id in page_ids if page_id >= self.num_head_pages]
        return heads + body if len(heads) == self.kv_format.head_pages else heads

    @property
    def longest_sequence_tokens(self) -> int:
        """Tokens of the longest sequence that an empty pool holds."""
        return (min(self.kv_format.head_pages, self.num_head_pages) + self.num_body_pages) * self.page_size


def kv_format_of(config: EngineConfig, kv_dtype: str) -> KVFormat:
    if config.kv_bits is None:
        return KVFormat(kv_dtype)
    head_pages = -(-config.quantized_kv_start // config.page_size)
    return KVFormat(kv_dtype, config.kv_bits, config.kv_group_size, head_pages)


def pool_layout(config: EngineConfig, spec: ModelSpec, kv_format: KVFormat) -> PoolLayout:
    """The pool that the settings ask for. Raises `ConfigError` when it cannot be, or not on this machine."""
    try:
        kv_format.check_head(spec.head_dim)
    except KVFormatError as error:
        raise ConfigError(str(error)) from None
    shape = spec.num_layers, spec.num_kv_heads, spec.head_dim
    per_page = config.page_size * kv_format.bytes_per_token(*shape)
    per_head_page = config.page_size * kv_format.full.bytes_per_token(*shape)
    budget_bytes = config.kv_cache_bytes or default_kv_cache_bytes()
    if config.num_pages is None and budget_bytes < per_page:
        raise ConfigError(
            f"kv_cache_bytes={budget_bytes} is below one page of {per_page} bytes: give at least that, or num_pages"
        )
    half = (config.num_pages or budget_bytes // per_head_page) // 2
    num_heads = _num_head_pages(config, kv_format, half)
    num_pages = config.num_pages or num_heads + (budget_bytes - num_heads * per_head_page) // per_page
    layout = PoolLayout(kv_format, config.page_size, num_pages, num_heads, per_page, per_head_page)
    _require_memory(layout)
    return layout


def _num_head_pages(config: EngineConfig, kv_format: KVFormat, half_of_pool: int) -> int:
    per_sequence = kv_format.head_pages
    if half_of_pool < per_sequence:
        raise ConfigError(
            f"quantized_kv_start={config.quantized_kv_start} keeps {per_sequence} pages of every sequence in full "
            f"precision, and half of the pool holds {half_of_pool} of them: enlarge the pool or start earlier"
        )
    return min(half_of_pool, HEADS_PER_ACTIVE_REQUEST * config.max_active_requests * per_sequence)


def _require_memory(layout: PoolLayout) -> None:
    """Refuse a pool larger than the machine before it is allocated."""
    there = physical_memory_bytes()
    if layout.num_bytes > there:
        raise ConfigError(
            f"num_pages={layout.num_pages} of {layout.bytes_per_page} bytes need {layout.num_bytes / GIB:.1f} GiB, "
            f"this machine has {there / GIB:.1f} GiB: give fewer pages"
        )
