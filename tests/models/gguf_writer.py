"""A small GGUF writer, so that tests do not read files with the code that wrote them.

Block layouts: ggml's ggml-quants.c (`quantize_row_q4_0_ref` and its siblings). Row order: llama.cpp's
convert_hf_to_gguf.py (`permute`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ALIGNMENT_BYTES = 32
TYPE_IDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q4_K": 12}

HF_TO_GGUF = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """A Hugging Face parameter name as llama.cpp writes it."""
    stem, suffix = name.rsplit(".", 1)
    top = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    if stem in top:
        return f"{top[stem]}.{suffix}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{HF_TO_GGUF[part]}.{suffix}"


def permuted(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """llama.cpp's row order for query and key matrices of the Llama family."""
    halves = rows.reshape(num_heads, 2, rows.shape[0] // num_heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def quantized(values: np.ndarray, type_name: str) -> tuple[bytes, np.ndarray]:
    """The bytes of a tensor, and the values that those bytes stand for."""
    if type_name == "F32":
        return values.astype("<f4").tobytes(), values.astype(np.float32)
    if type_name == "F16":
        return values.astype("<f2").tobytes(), values.astype(np.float16).astype(np.float32)
    blocks = values.reshape(-1, 32).astype(np.float32)
    encode = {"Q4_0": _q4_0, "Q4_1": _q4_1, "Q8_0": _q8_0}[type_name]
    data, meant = encode(blocks)
    return data, meant.reshape(values.shape)


def _q4_0(blocks: np.ndarray) -> tuple[bytes, np.ndarray]:
    extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    scale = (extreme / -8).astype("<f2")
    codes = np.clip(np.round(blocks / scale.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    return _packed([scale], codes), (codes.astype(np.float32) - 8) * scale.astype(np.float32)


def _q4_1(blocks: np.ndarray) -> tuple[bytes, np.ndarray]:
    low = blocks.min(1, keepdims=True).astype("<f2")
    scale = ((blocks.max(1, keepdims=True) - blocks.min(1, keepdims=True)) / 15).astype("<f2")
    steps = (blocks - low.astype(np.float32)) / scale.astype(np.float32)
    codes = np.clip(np.round(steps), 0, 15).astype(np.uint8)
    meant = codes.astype(np.float32) * scale.astype(np.float32) + low.astype(np.float32)
    return _packed([scale, low], codes), meant


def _q8_0(blocks: np.ndarray) -> tuple[bytes, np.ndarray]:
    scale = (np.abs(blocks).max(1, keepdims=True) / 127).astype("<f2")
    codes = np.clip(np.round(blocks / scale.astype(np.float32)), -127, 127).astype(np.int8)
    data = np.concatenate([scale.view(np.uint8), codes.view(np.uint8)], axis=1).tobytes()
    return data, codes.astype(np.float32) * scale.astype(np.float32)


def _packed(heads: list[np.ndarray], codes: np.ndarray) -> bytes:
    """Block heads, then two codes a byte: value i in the low half, value i + 16 in the high half."""
    halves = codes[:, :16] | (codes[:, 16:] << 4)
    return np.concatenate([*(head.view(np.uint8) for head in heads), halves], axis=1).tobytes()


def write_gguf(
    path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]
) -> None:
    """Write version 3. `tensors`: name to (type name, shape with rows first, data)."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        header += _string(key) + _value(value)
    data = b""
    for name, (type_name, shape, content) in tensors.items():
        header += _string(name) + struct.pack("<I", len(shape))
        header += b"".join(struct.pack("<Q", length) for length in reversed(shape))
        header += struct.pack("<IQ", TYPE_IDS[type_name], len(data))
        data += content + b"\0" * (-len(content) % ALIGNMENT_BYTES)
    path.write_bytes(header + b"\0" * (-len(header) % ALIGNMENT_BYTES) + data)


def _string(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    item_type = 8 if isinstance(value[0], str) else 5
    items = [_string(item) if item_type == 8 else struct.pack("<i", item) for item in value]
    return struct.pack("<IIQ", 9, item_type, len(value)) + b"".join(items)
