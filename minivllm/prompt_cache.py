"""Prompt-cache files of mlx-lm, both ways: what `mlx_lm.cache_prompt` writes and `mlx_lm.generate` continues from.

Such a file holds keys and values, [1, num_kv_heads, tokens, head_dim] per layer, and of the model only a name. It tells
neither the tokens nor their text, nor the weights, the tokenizer or the position settings; whoever takes one in has to
say what it was made of, and what is said is checked here against what it holds.

Format: mlx_lm/models/cache.py of mlx-lm 0.32.2, whose own functions read and write it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.sequence_storage import as_stored, shapes
from minivllm.cache.slot_errors import SlotError, SlotFileError
from minivllm.config import SamplingParams
from minivllm.prompt_cache_check import TOLERANCES, Claim, check_claim
from minivllm.slots import EngineSlot, StoredSequence

if TYPE_CHECKING:
    from minivllm.engine import Engine
    from minivllm.models.tokenizer import Tokenizer

SUFFIX = ".safetensors"
QUANTIZED_PARTS = ("packed", "scales", "biases")


@dataclass(frozen=True, slots=True)
class PromptCache:
    """`arrays` as a slot names them, [tokens, num_kv_heads, ...]; `bits` None: full precision."""

    model: str
    num_tokens: int
    num_layers: int
    bits: int | None
    group_size: int | None
    arrays: Mapping[str, mx.array]


def open_user_turn(tokenizer: Tokenizer, text: str, use_chat_template: bool = True) -> list[int]:
    """The tokens that `mlx_lm.cache_prompt` makes of a text: a user's turn that is not closed yet."""
    if not (use_chat_template and tokenizer.has_chat_template):
        return tokenizer.encode(text)
    return tokenizer.encode_chat(
        [{"role": "user", "content": text}], add_generation_prompt=False, continue_final_message=True
    )


def export_prompt_cache(slot: EngineSlot, path: Path, model: str, kv_format: KVFormat) -> int:
    """Write what a slot holds for `mlx_lm.generate --prompt-cache-file`; returns the number of tokens.

    `model` is where mlx-lm finds the model: a folder or a Hub id. Raises `SlotError`.
    """
    from mlx_lm.models.cache import save_prompt_cache

    if path.suffix != SUFFIX:
        raise SlotError(f"{path.name} must end in {SUFFIX}: mlx-lm reads no other name")
    if kv_format.bits is not None and kv_format.head_pages:
        raise SlotError("mlx-lm's files hold one precision: leave quantized_kv_start out")
    held = slot.take_out()
    caches = [_cache(held, layer, kv_format) for layer in range(_num_layers(held.arrays))]
    temporary = path.with_name(f".{secrets.token_hex(8)}{SUFFIX}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        save_prompt_cache(str(temporary), caches, {"model": model, "tokenizer_config": json.dumps({})})
        os.replace(temporary, path)
    except OSError as error:
        raise SlotError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return len(held.token_ids)


def read_prompt_cache(path: Path) -> PromptCache:
    """A file of mlx-lm's, evaluated. Raises `SlotFileError` when it is none, or of a kind that pages cannot hold."""
    from mlx_lm.models.cache import load_prompt_cache

    try:
        caches, metadata = load_prompt_cache(str(path), return_metadata=True)
        return _taken_apart(caches, metadata)
    except SlotFileError as error:
        raise SlotFileError(f"{path.name} is refused: {error}") from None
    except Exception as error:  # mlx-lm does not check what it reads: anything can come of it
        reason = f"{type(error).__name__}: {error}"
        raise SlotFileError(f"{path.name} is no prompt-cache file of mlx-lm ({reason:.200})") from None


def import_prompt_cache(slot: EngineSlot, cache: PromptCache, token_ids: Sequence[int], num_samples: int = 16) -> None:
    """Take a file in as the sequence of a slot, if it was made of these tokens. Raises `SlotFileError` if it was not.

    Every position is compared in the first layer, whose keys and values depend on the token and its place alone, and
    `num_samples` positions in all layers, by computing them again over what the file holds.
    """
    if cache.num_tokens != len(token_ids):
        raise SlotFileError(
            f"the file holds {cache.num_tokens} tokens and the text makes {len(token_ids)}: it was made of another "
            "text, or with another template"
        )
    slot.engine.limits.check(token_ids, SamplingParams(max_tokens=1))
    sequence = StoredSequence(tuple(token_ids), _fitted(cache, slot.engine))
    tolerance = TOLERANCES[cache.bits or cache.arrays["layers.0.keys.full"].dtype]
    claim = Claim(sequence, tolerance, num_samples)
    slot.put_in(sequence, None, check=lambda request: check_claim(slot.engine, request, claim))


def _fitted(cache: PromptCache, engine: Engine) -> dict[str, mx.array]:
    """In the engine's own number format. Raises `SlotFileError`, naming both, when it stores other things."""
    ours = engine.layout.kv_format
    if (cache.bits, cache.group_size) != (ours.bits, ours.group_size) or ours.head_pages:
        raise SlotFileError(
            f"the file has kv_bits {cache.bits} in groups of {cache.group_size}, this engine kv_bits {ours.bits} in "
            f"groups of {ours.group_size} behind {ours.head_pages} pages in full precision: make them equal"
        )
    expected = shapes(engine.storage, cache.num_tokens)
    theirs = {name: tuple(array.shape) for name, array in cache.arrays.items()}
    if theirs != {name: shape for name, (_, shape) in expected.items()}:
        raise SlotFileError(f"the file is of another model than {engine.model_name}: its arrays have other shapes")
    return {name: as_stored(array, expected[name][0]) for name, array in cache.arrays.items()}


def _cache(held: StoredSequence, layer: int, kv_format: KVFormat) -> Any:
    from mlx_lm.models.cache import KVCache, QuantizedKVCache

    num_tokens = len(held.token_ids)
    if kv_format.bits is None:
        both = [_for_mlx(held.arrays[f"layers.{layer}.{kind}.full"]) for kind in ("keys", "values")]
        return KVCache.from_state((*both, num_tokens))
    quantized = [
        tuple(_for_mlx(held.arrays[f"layers.{layer}.{kind}.{part}"]) for part in QUANTIZED_PARTS)
        for kind in ("keys", "values")
    ]
    return QuantizedKVCache.from_state((*quantized, num_tokens, kv_format.group_size, kv_format.bits))


def _for_mlx(array: mx.array) -> mx.array:
    """[tokens, num_kv_heads, d] -> [1, num_kv_heads, tokens, d], contiguous"""
    return mx.contiguous(array.transpose(1, 0, 2)[None])


def _taken_apart(caches: Sequence[Any], metadata: Mapping[str, Any]) -> PromptCache:
    from mlx_lm.models.cache import KVCache, QuantizedKVCache

    kinds = {type(cache) for cache in caches}
    if kinds not in ({KVCache}, {QuantizedKVCache}):
        names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
        raise SlotFileError(f"it holds {names}: pages hold a plain KVCache or QuantizedKVCache in every layer")
    first, quantized = caches[0], kinds == {QuantizedKVCache}
    parts = QUANTIZED_PARTS if quantized else ("full",)
    num_tokens = int(first.offset)
    arrays = {}
    for layer, cache in enumerate(caches):
        if int(cache.offset) != num_tokens:
            raise SlotFileError(f"layer {layer} holds {int(cache.offset)} tokens, the first one {num_tokens}")
        for kind, stored in (("keys", cache.keys), ("values", cache.values)):
            for part, array in zip(parts, stored if quantized else (stored,), strict=True):
                arrays[f"layers.{layer}.{kind}.{part}"] = _from_mlx(array, num_tokens)
    mx.eval(arrays)
    bits, group_size = (int(first.bits), int(first.group_size)) if quantized else (None, None)
    return PromptCache(str(metadata.get("model", "")), num_tokens, len(caches), bits, group_size, arrays)


def _from_mlx(array: mx.array, num_tokens: int) -> mx.array:
    if array.ndim != 4 or array.shape[0] != 1 or not 0 < num_tokens <= array.shape[2]:
        raise SlotFileError(f"an array of shape {array.shape} does not hold {num_tokens} tokens of one sequence")
    # Through NumPy words: an array of its own, that shares nothing with the file.
    return mx.array(np.array(mx.contiguous(array[0, :, :num_tokens].transpose(1, 0, 2)).view(mx.uint8))).view(
        array.dtype
    )


def _num_layers(arrays: Mapping[str, mx.array]) -> int:
    return 1 + max(int(name.split(".")[1]) for name in arrays)
