"""What a model and its KV cache take of a memory budget: arithmetic over a `config.json`, no weights needed.

    bytes per token    2 (keys and values) x layers x KV heads x head size x bytes; quantized: with scales and biases
    one conversation   that, times its tokens rounded up to whole pages
    buffers            the largest arrays of one forward pass: rows x (4 x hidden + 2 x feed-forward) float32 values,
                       and a row of logits for each request that runs

Any model works whose layers keep keys and values per head: Llama, Mistral, Qwen, Gemma, Phi and their like, mixtures of
experts included. A layer with a sliding window needs less than is counted here; the report says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minivllm.cache.kv_format import KVFormat
from minivllm.config import GIB, ConfigError

WEIGHT_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
BUFFER_VALUE_BYTES = 4


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the arithmetic needs to know of a model."""

    num_layers: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    num_parameters: int
    bytes_per_weight: float
    notes: tuple[str, ...] = ()

    @property
    def weights_bytes(self) -> int:
        return round(self.num_parameters * self.bytes_per_weight)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """All in bytes, except the counts that say so. `kv_bits` 16 means two-byte numbers, not quantized."""

    shape: ModelShape
    context_tokens: int
    kv_bits: int
    budget_bytes: int
    weights_bytes: int
    buffers_bytes: int
    bytes_per_token: int
    bytes_per_page: int
    conversation_bytes: int

    @property
    def free_bytes(self) -> int:
        """What is left for the KV cache; below 0 when weights and buffers do not fit."""
        return self.budget_bytes - self.weights_bytes - self.buffers_bytes

    @property
    def num_conversations(self) -> int:
        return max(0, self.free_bytes) // self.conversation_bytes


def memory_budget(
    shape: ModelShape,
    *,
    context_tokens: int,
    kv_bits: int = 16,
    kv_group_size: int = 64,
    budget_bytes: int,
    page_size: int = 16,
    max_batched_tokens: int = 256,
    max_active_requests: int = 8,
    weights_bytes: int | None = None,
) -> MemoryBudget:
    """Raises `ConfigError` on a number that means nothing, and when no group divides the head size."""
    sizes = {
        "context": context_tokens,
        "budget": budget_bytes,
        "page_size": page_size,
        "max_batched_tokens": max_batched_tokens,
        "max_active_requests": max_active_requests,
    }
    for name, value in sizes.items():
        if value < 1:
            raise ConfigError(f"{name}={value} must be at least 1")
    kv_format = _kv_format(kv_bits, kv_group_size, shape.head_dim)
    per_token = kv_format.bytes_per_token(shape.num_layers, shape.num_kv_heads, shape.head_dim)
    row_values = 4 * shape.hidden_size + 2 * shape.intermediate_size
    buffer_values = max_batched_tokens * row_values + max_active_requests * shape.vocab_size
    return MemoryBudget(
        shape=shape,
        context_tokens=context_tokens,
        kv_bits=kv_bits,
        budget_bytes=budget_bytes,
        weights_bytes=shape.weights_bytes if weights_bytes is None else weights_bytes,
        buffers_bytes=buffer_values * BUFFER_VALUE_BYTES,
        bytes_per_token=per_token,
        bytes_per_page=per_token * page_size,
        conversation_bytes=-(-context_tokens // page_size) * page_size * per_token,
    )


def _kv_format(kv_bits: int, kv_group_size: int, head_dim: int) -> KVFormat:
    if kv_bits in (16, 32):
        return KVFormat(f"float{kv_bits}")
    try:
        kv_format = KVFormat("float16", kv_bits, kv_group_size)
        kv_format.check_head(head_dim)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return kv_format


def read_shape(path: Path) -> ModelShape:
    """The shape that a `config.json`, or the one in a folder, describes. Raises `ConfigError`."""
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{file} is not JSON: give a model's config.json, or its folder") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{file} holds no JSON object: give a model's config.json, or its folder")
    return shape_of(config)


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """The same from a config that was read; a multimodal model's text part is taken."""
    text = {**config, **config["text_config"]} if isinstance(config.get("text_config"), dict) else config
    if text.get("kv_lora_rank"):
        raise ConfigError(
            f"kv_lora_rank={text['kv_lora_rank']}: this model keeps a latent vector in the place of keys and values "
            "(multi-head latent attention), which this arithmetic does not cover"
        )
    num_heads, hidden_size = _count(text, "num_attention_heads"), _count(text, "hidden_size")
    return ModelShape(
        num_layers=_count(text, "num_hidden_layers"),
        num_kv_heads=_count(text, "num_key_value_heads", num_heads),
        head_dim=_count(text, "head_dim", hidden_size // num_heads),
        hidden_size=hidden_size,
        intermediate_size=_count(text, "intermediate_size"),
        vocab_size=_count(text, "vocab_size"),
        num_parameters=_num_parameters(text, num_heads),
        bytes_per_weight=_bytes_per_weight(config),
        notes=_notes(text),
    )


def _num_parameters(text: Mapping[str, Any], num_heads: int) -> int:
    """Embedding, head, and per layer: four projections of attention, three of each expert, norms and biases."""
    hidden, layers = _count(text, "hidden_size"), _count(text, "num_hidden_layers")
    head_dim = _count(text, "head_dim", hidden // num_heads)
    queries, kv = num_heads * head_dim, _count(text, "num_key_value_heads", num_heads) * head_dim
    attention = hidden * (2 * queries + 2 * kv)
    if text.get("model_type") == "qwen2":
        attention += queries + 2 * kv
    if text.get("model_type") in ("qwen3", "qwen3_moe"):
        attention += 2 * head_dim
    experts = next((int(text[key]) for key in ("num_local_experts", "num_experts") if text.get(key)), 1)
    inner = text.get("moe_intermediate_size") if experts > 1 else None
    feed_forward = experts * 3 * hidden * int(inner or _count(text, "intermediate_size"))
    router = hidden * experts if experts > 1 else 0
    embeddings = _count(text, "vocab_size") * hidden * (1 if text.get("tie_word_embeddings", False) else 2)
    return embeddings + layers * (attention + feed_forward + router + 2 * hidden) + hidden


def _bytes_per_weight(config: Mapping[str, Any]) -> float:
    """As stored: MLX's quantization adds a scale and a bias of two bytes each to every group."""
    quantization = config.get("quantization")
    if isinstance(quantization, dict) and quantization.get("bits"):
        return float(quantization["bits"]) / 8 + 4 / float(quantization.get("group_size", 64))
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    return WEIGHT_BYTES.get(dtype, 2.0)


def _notes(text: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    windowed = [kind for kind in text.get("layer_types") or () if kind != "full_attention"]
    if windowed:
        notes.append(f"{len(windowed)} layers do not attend to everything and need less than is counted here")
    elif text.get("sliding_window") and text.get("use_sliding_window", True):
        notes.append(f"a sliding window of {text['sliding_window']} tokens needs less than is counted here")
    return tuple(notes)


def _count(text: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = text.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} is {value!r}: the model's config.json must give a whole number above 0")
    return value


def parse_bytes(text: str) -> int:
    """24GiB, 24GB, 1.5 MiB, 1000: a number and a unit of bytes. Raises `ConfigError`."""
    units = {"": 1, "b": 1}
    for power, letter in enumerate("kmgt", start=1):
        units |= {f"{letter}b": 1000**power, f"{letter}ib": 1024**power}
    number = text.strip().rstrip("BbIiKkMmGgTt").strip()
    unit = text.strip()[len(number) :].strip().lower()
    try:
        value = float(number) * units[unit]
    except (ValueError, KeyError):
        raise ConfigError(f"{text!r} is no number of bytes: give something like 24GiB, 24GB or 512MiB") from None
    if not 1 <= value < 2**63:
        raise ConfigError(f"{text!r} is {value:g} bytes: give at least 1 and less than 8 EiB")
    return int(value)


def human_bytes(num_bytes: int) -> str:
    """In both units people use: 4.5 GiB (4.8 GB)."""
    for binary, decimal, name in ((GIB, 10**9, "G"), (2**20, 10**6, "M"), (2**10, 10**3, "k")):
        if abs(num_bytes) >= binary:
            prefix = "K" if name == "k" else name
            return f"{num_bytes / binary:.1f} {prefix}iB ({num_bytes / decimal:.1f} {name}B)"
    return f"{num_bytes} B"
