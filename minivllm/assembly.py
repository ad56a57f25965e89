"""How an engine is put together: its sizes, its identity, and the components that were given or are ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minivllm.cache.eviction import POLICIES as EVICTION
from minivllm.cache.identity import CacheIdentity
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.manager import CacheManager
from minivllm.cache.page_pool import RefCountedPagePool, TwoPrecisionPagePool
from minivllm.cache.pool_layout import PoolLayout
from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.cache.publication import POLICIES as PUBLICATION
from minivllm.cache.slots import Slots
from minivllm.config import ConfigError, EngineConfig
from minivllm.flights import POLICIES as FLIGHTS
from minivllm.models.loading import LoadedModel
from minivllm.protocols import Flights, check_components
from minivllm.scheduler import Scheduler
from minivllm.stats import Counters


def choose_components(
    given: Mapping[str, Any] | None,
    config: EngineConfig,
    layout: PoolLayout,
    identity: CacheIdentity,
    counters: Counters,
) -> dict[str, Any]:
    """The components that were given, checked, and ours for the rest. Raises `ConfigError`."""
    checked = check_components(given)
    index = checked["prefix_index"] if "prefix_index" in checked else _prefix_index(config, identity)
    defaults: dict[str, Callable[[], Any]] = {
        "page_pool": lambda: _page_pool(layout),
        "prefix_index": lambda: index,
        "eviction": lambda: EVICTION[config.eviction](index.parent_of),
        "publication": PUBLICATION[config.publication],
        "flights": lambda: FLIGHTS[config.single_flight](counters, config.page_size),
    }
    chosen = {name: checked[name] if name in checked else make() for name, make in defaults.items()}
    _require_size("page_pool", chosen["page_pool"], "num_pages", layout.num_pages)
    if layout.num_head_pages:
        _require_size("page_pool", chosen["page_pool"], "num_head_pages", layout.num_head_pages, missing=0)
    _require_size("prefix_index", chosen["prefix_index"], "page_size", config.page_size)
    return chosen


def make_manager(
    chosen: Mapping[str, Any], config: EngineConfig, layout: PoolLayout, counters: Counters, clock: Callable[[], float]
) -> CacheManager:
    return CacheManager(
        **{name: component for name, component in chosen.items() if name != "flights"},
        page_size=config.page_size,
        prefix_cache=config.prefix_cache,
        prefix_ttl_s=config.prefix_ttl_s,
        admission=config.admission,
        num_head_pages=layout.kv_format.head_pages,
        counters=counters,
        clock=clock,
    )


def make_scheduler(
    manager: CacheManager, flights: Flights, slots: Slots, config: EngineConfig, clock: Callable[[], float]
) -> Scheduler:
    return Scheduler(
        manager,
        flights,
        max_batched_tokens=config.max_batched_tokens,
        max_active_requests=config.max_active_requests,
        scheduling=config.scheduling,
        clock=clock,
        slots=slots,
    )


def max_model_len(config: EngineConfig, loaded: LoadedModel) -> int:
    """The longest sequence in tokens: what was asked, at most what the model was made for."""
    longest = loaded.spec.max_position_embeddings
    if config.max_model_len is None:
        return longest
    if config.max_model_len > longest:
        raise ConfigError(f"max_model_len={config.max_model_len} is beyond the {longest} positions of {loaded.name}")
    return config.max_model_len


def identity_of(loaded: LoadedModel, config: EngineConfig, kv_format: KVFormat) -> CacheIdentity:
    """What the pages of this engine depend on besides their tokens."""
    spec = loaded.spec
    return CacheIdentity(
        weights_id=loaded.weights_id,
        tokenizer_digest=loaded.tokenizer.digest,
        num_layers=spec.num_layers,
        num_kv_heads=spec.num_kv_heads,
        head_dim=spec.head_dim,
        kv_dtype=kv_format.dtype,
        kv_bits=kv_format.bits,
        kv_group_size=kv_format.group_size,
        kv_head_pages=kv_format.head_pages,
        page_size=config.page_size,
        rope_theta=spec.rope_theta,
        rope_traditional=spec.rope_traditional,
        rope_scaling=spec.rope_scaling,
    )


def _prefix_index(config: EngineConfig, identity: CacheIdentity) -> ChainedPrefixIndex:
    return ChainedPrefixIndex(config.page_size, identity.digest())


def _page_pool(layout: PoolLayout) -> RefCountedPagePool:
    if layout.num_head_pages:
        return TwoPrecisionPagePool(layout.num_pages, layout.num_head_pages)
    return RefCountedPagePool(layout.num_pages)


def _require_size(name: str, component: Any, attribute: str, expected: int, missing: int | None = None) -> None:
    """A component that tells its size must have the engine's. One that tells none has `missing`, by default that."""
    actual = getattr(component, attribute, expected if missing is None else missing)
    if actual != expected:
        raise ConfigError(f"components[{name!r}] has {attribute}={actual}, the engine {expected}: make them equal")
