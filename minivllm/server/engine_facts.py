"""What other threads may know of an engine: plain values, no array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from minivllm.config import EngineConfig
from minivllm.request import RequestLimits

if TYPE_CHECKING:
    from minivllm.engine import Engine
    from minivllm.models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What may be known of the engine outside its thread. Nothing here holds an array."""

    tokenizer: Tokenizer
    limits: RequestLimits
    config: EngineConfig
    num_pages: int
    page_size: int
    max_model_len: int
    kv_cache_bytes: int
    kv_dtype: str
    """As resolved: the configuration may say "auto"."""
    identity: str
    """Digest of what a stored page depends on: servers with the same one could exchange pages."""

    @classmethod
    def of(cls, engine: Engine) -> EngineFacts:
        return cls(
            tokenizer=engine.tokenizer,
            limits=engine.limits,
            config=engine.config,
            num_pages=engine.num_pages,
            page_size=engine.page_size,
            max_model_len=engine.max_model_len,
            kv_cache_bytes=engine.kv_cache_bytes,
            kv_dtype=engine.kv_dtype,
            identity=engine.identity.digest().hex(),
        )


@dataclass(frozen=True, slots=True)
class Health:
    """state: "loading", "ready", "dead" (with the reason) or "stopped"."""

    state: str
    reason: str = ""
