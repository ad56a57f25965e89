"""What a person may choose: `EngineConfig` for an engine, `SamplingParams` for one request.

Both are values: frozen, and checked where they are made, so that the rest of the engine never meets a bad one.
A choice that is listed in `CHOICES` is wired; what a later version adds is refused here until it is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from minivllm.cache.kv_format import GROUP_SIZES, KV_BITS

GIB = 1024**3

# Every generated token is compared with all of them, in the engine's own time.
MAX_STOP_STRINGS = 64
MAX_STOP_TOKEN_IDS = 1024

CHOICES: dict[str, tuple[str, ...]] = {
    "publication": ("on_finish", "after_prefill", "incremental", "on_schedule"),
    "single_flight": ("off", "release_on_finish", "release_after_prefill", "page"),
    "scheduling": ("fcfs", "shortest_prefill", "longest_prefix"),
    "admission": ("reserve", "optimistic"),
    "eviction": ("lru", "lfu", "fifo", "length", "scan"),
    "kv_dtype": ("auto", "float32", "float16", "bfloat16"),
    "attention": ("auto", "portable", "metal", "cuda"),
}
NUMBER_CHOICES: dict[str, tuple[int, ...]] = {"kv_bits": KV_BITS, "kv_group_size": GROUP_SIZES}


class ConfigError(ValueError):
    """A setting that cannot be used; the message names the field, the value and what would be right."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine. Sizes are in tokens, pages or bytes as the names say.

    `num_pages` and `kv_cache_bytes` are two ways to size the page pool; give at most one. With neither, the pool
    gets the smaller of a quarter of the machine's memory and 2 GiB.
    """

    page_size: int = 16
    num_pages: int | None = None
    kv_cache_bytes: int | None = None
    max_model_len: int | None = None
    max_batched_tokens: int = 256
    max_active_requests: int = 8
    prefix_cache: bool = True
    prefix_ttl_s: float | None = None
    publication: str = "incremental"
    single_flight: str = "page"
    scheduling: str = "fcfs"
    admission: str = "reserve"
    eviction: str = "lru"
    kv_dtype: str = "auto"
    kv_bits: int | None = None
    kv_group_size: int = 64
    quantized_kv_start: int = 0
    attention: str = "auto"
    num_slots: int = 4
    slot_save_path: str | os.PathLike[str] | None = None
    debug_poison_pages: bool = False

    def __post_init__(self) -> None:
        for name in ("page_size", "max_batched_tokens", "max_active_requests"):
            _require_whole(name, getattr(self, name), at_least=1)
        _require_whole("num_slots", self.num_slots, at_least=0)
        path = self.slot_save_path
        if path is not None and (not isinstance(path, (str, os.PathLike)) or not os.fspath(path)):
            raise ConfigError(f"slot_save_path={path!r} is not the name of a folder: give one, or None")
        for name in ("num_pages", "kv_cache_bytes", "max_model_len"):
            if getattr(self, name) is not None:
                _require_whole(name, getattr(self, name), at_least=1)
        if self.num_pages is not None and self.kv_cache_bytes is not None:
            raise ConfigError(
                f"num_pages={self.num_pages} and kv_cache_bytes={self.kv_cache_bytes} both size the page pool: "
                "give one of them"
            )
        for name in ("prefix_cache", "debug_poison_pages"):
            _require_truth(name, getattr(self, name))
        if self.prefix_ttl_s is not None:
            _require_number("prefix_ttl_s", self.prefix_ttl_s)
            if not self.prefix_ttl_s > 0:
                raise ConfigError(
                    f"prefix_ttl_s={self.prefix_ttl_s} must be above 0 seconds; None keeps pages until evicted"
                )
        self._check_quantization()
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name}={getattr(self, name)!r} is not one of {', '.join(allowed)}")

    def _check_quantization(self) -> None:
        for name, allowed in NUMBER_CHOICES.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value not in allowed):
                raise ConfigError(f"{name}={value!r} is not one of {', '.join(map(str, allowed))}")
        if self.kv_group_size is None:
            raise ConfigError("kv_group_size=None is not a number: give 32, 64 or 128")
        _require_whole("quantized_kv_start", self.quantized_kv_start, at_least=0)
        if self.quantized_kv_start and self.kv_bits is None:
            raise ConfigError(
                f"quantized_kv_start={self.quantized_kv_start} means nothing without kv_bits: give kv_bits 8 or 4"
            )


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one request samples its answer. Names and defaults are vLLM's.

    `temperature=0` is greedy. `logprobs` and `prompt_logprobs` are the number of alternatives beside the token itself;
    0 counts as asked. A request with `prompt_logprobs` computes its whole prompt: skipped tokens have no logits.
    """

    max_tokens: int = 16
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: str | Iterable[str] = ()
    stop_token_ids: Iterable[int] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None

    def __post_init__(self) -> None:
        _require_whole("max_tokens", self.max_tokens, at_least=1)
        _require_number("temperature", self.temperature)
        if not 0 <= self.temperature <= 100:
            raise ConfigError(f"temperature={self.temperature} must lie between 0 (greedy) and 100")
        _require_number("top_p", self.top_p)
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p={self.top_p} must be above 0 and at most 1")
        if self.seed is not None:
            _require_whole("seed", self.seed, at_least=-(2**63))
        for name in ("logprobs", "prompt_logprobs"):
            if getattr(self, name) is not None:
                _require_whole(name, getattr(self, name), at_least=0)
                if getattr(self, name) > 20:
                    raise ConfigError(f"{name}={getattr(self, name)} asks for too many alternatives: at most 20")
        _require_truth("ignore_eos", self.ignore_eos)
        object.__setattr__(self, "stop", _stop_strings(self.stop))
        object.__setattr__(self, "stop_token_ids", _whole_tuple("stop_token_ids", self.stop_token_ids))

    @property
    def stop_strings(self) -> tuple[str, ...]:
        assert isinstance(self.stop, tuple)
        return self.stop

    @property
    def stop_ids(self) -> tuple[int, ...]:
        assert isinstance(self.stop_token_ids, tuple)
        return self.stop_token_ids


def default_kv_cache_bytes() -> int:
    """The smaller of a quarter of the machine's memory and 2 GiB, in bytes."""
    return min(physical_memory_bytes() // 4, 2 * GIB)


def physical_memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _require_whole(name: str, value: Any, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name}={value!r} is not a whole number")
    if value < at_least:
        raise ConfigError(f"{name}={value} must be at least {at_least}")


def _require_few(name: str, values: Sequence[object], at_most: int) -> None:
    if len(values) > at_most:
        raise ConfigError(f"{name} has {len(values)} entries: give at most {at_most}")


def _require_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{name}={value!r} is not a finite number")


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    if values is None:
        return ()
    if not isinstance(values, Iterable):
        raise ConfigError(f"{name}={values!r} is not a list: give [{values!r}]")
    return tuple(values)


def _require_truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} is not a truth value: give True or False")


def _stop_strings(stop: Any) -> tuple[str, ...]:
    strings = (stop,) if isinstance(stop, str) else _listed("stop", stop)
    _require_few("stop", strings, MAX_STOP_STRINGS)
    for text in strings:
        if not isinstance(text, str) or not text:
            raise ConfigError(f"stop={text!r} is not a string of at least one character")
    return strings


def _whole_tuple(name: str, values: Any) -> tuple[int, ...]:
    numbers = _listed(name, values)
    _require_few(name, numbers, MAX_STOP_TOKEN_IDS)
    for value in numbers:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{name} holds {value!r}, which is not a token id")
    return numbers
