"""What a capacity costs in memory, and what it saves in computation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minivllm.policies.replay import Tally

GIB = 2**30


@dataclass(frozen=True, slots=True)
class KVShape:
    """What keys and values of one token consist of in a model."""

    num_layers: int
    num_kv_heads: int
    head_dim: int
    bytes_per_element: float = 2.0  # float16 or bfloat16; 8 bits in groups of 64 cost 1.0625

    def __post_init__(self) -> None:
        for name in ("num_layers", "num_kv_heads", "head_dim"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} is {value!r}: give a whole number of 1 or more")
        if not (math.isfinite(self.bytes_per_element) and self.bytes_per_element > 0):
            raise ValueError(f"bytes_per_element is {self.bytes_per_element}: give a number above 0")

    @property
    def bytes_per_token(self) -> float:
        """2 (keys and values) x layers x KV heads x head size x bytes of an element."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * self.bytes_per_element

    @classmethod
    def from_config(cls, config: Mapping[str, Any], bytes_per_element: float = 2.0) -> KVShape:
        """The shape in a Hugging Face `config.json` (or its `text_config`). ValueError names what is missing."""
        config = config.get("text_config", config)
        if "kv_lora_rank" in config:
            raise ValueError("the model stores compressed keys and values (kv_lora_rank): give their shape yourself")
        num_heads = _whole(config, "num_attention_heads")
        head_dim = config.get("head_dim") or _whole(config, "hidden_size") // num_heads
        num_kv_heads = config.get("num_key_value_heads") or num_heads
        return cls(_whole(config, "num_hidden_layers"), num_kv_heads, head_dim, bytes_per_element)


def _whole(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} of the model's config is {value!r}: a whole number of 1 or more is needed")
    return value


def capacity_gib(capacity_units: int, unit_tokens: int, shape: KVShape) -> float:
    """The memory that a capacity needs, in GiB."""
    return capacity_units * unit_tokens * shape.bytes_per_token / GIB


@dataclass(frozen=True, slots=True)
class Saving:
    """Prefill of the whole traffic: what it takes without a cache, and what the cache saved."""

    prefill_s: float
    saved_prefill_s: float


def saving(tally: Tally, prefill_tokens_per_s: float) -> Saving:
    """The gain, at a speed that was measured with prompts as long as the traffic's.

    Taken at one speed for all tokens: attention makes the late tokens of a long prompt dearer, so long hits save less
    than this says and the parts behind them cost more.
    """
    if not (math.isfinite(prefill_tokens_per_s) and prefill_tokens_per_s > 0):
        raise ValueError(f"prefill_tokens_per_s is {prefill_tokens_per_s}: give the tokens a second that you measured")
    return Saving(tally.num_tokens / prefill_tokens_per_s, tally.hit_tokens / prefill_tokens_per_s)
