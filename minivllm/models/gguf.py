"""Convert a `.gguf` file into a folder in MLX layout, which mlx-lm loads too.

llama.cpp stores each head's query and key rows of the Llama family so that rotary pairs are neighbours;
Hugging Face's files keep the first halves of all pairs before the second halves. The rows are put back into
that order here (`permute` in llama.cpp's convert_hf_to_gguf.py is the inverse).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minivllm.backend import mx
from minivllm.models.errors import ModelError
from minivllm.models.gguf_file import GgufHeader, GgufTensor, read_header
from minivllm.models.gguf_tokenizer import write_tokenizer
from minivllm.models.spec import FAMILIES, ModelSpec

GROUP_SIZE = 32
_QUANTIZED_BITS = {"Q4_0": 4, "Q4_1": 4, "Q8_0": 8}
_TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert(gguf: Path, folder: Path) -> None:
    """Fill `folder` with config.json, model.safetensors and the tokenizer of `gguf`."""
    header = read_header(gguf)
    config = _config(header)
    ModelSpec.from_config(config)  # refuses what could not be run before anything is written
    write_tokenizer(header.metadata, folder)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    mx.save_safetensors(str(folder / "model.safetensors"), _weights(gguf, header, config), {"format": "mlx"})


def _config(header: GgufHeader) -> dict[str, Any]:
    """The Hugging Face config that the metadata describes."""
    family = header.metadata.get("general.architecture")
    if family not in FAMILIES:
        raise ModelError(f"GGUF architecture {family!r} is not supported; use a model of one of {', '.join(FAMILIES)}")
    fields = {key.removeprefix(f"{family}."): value for key, value in header.metadata.items()}
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    if "token_embd.weight" not in shapes:
        raise ModelError("the GGUF file has no tensor token_embd.weight; it must be a complete language model")
    head_dim = fields.get("attention.key_length")
    config = {
        "model_type": family,
        "architectures": [
            {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[family]
        ],
        "num_hidden_layers": fields.get("block_count"),
        "hidden_size": fields.get("embedding_length"),
        "intermediate_size": fields.get("feed_forward_length"),
        "num_attention_heads": fields.get("attention.head_count"),
        "num_key_value_heads": fields.get("attention.head_count_kv", fields.get("attention.head_count")),
        "head_dim": head_dim or _quotient(fields.get("embedding_length"), fields.get("attention.head_count")),
        "v_head_dim": fields.get("attention.value_length"),
        "rms_norm_eps": _shortest_float32(fields.get("attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest_float32(fields.get("rope.freq_base", 10000.0)),
        "rope_scaling": _rope_scaling(fields, shapes),
        "sliding_window": fields.get("attention.sliding_window"),
        "max_position_embeddings": fields.get("context_length"),
        "vocab_size": shapes["token_embd.weight"][0],
        "hidden_act": "silu",
        "attention_bias": family != "qwen2" and "blk.0.attn_q.bias" in shapes,
        "mlp_bias": "blk.0.ffn_up.bias" in shapes,
        "tie_word_embeddings": "output.weight" not in shapes,
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": _ends(fields),
        "quantization": _quantization(header.tensors),
    }
    return {key: value for key, value in config.items() if value is not None}


def _ends(fields: Mapping[str, Any]) -> int | list[int] | None:
    """The end of a text and, where it is another token, the end of a turn."""
    ids = [fields.get(f"tokenizer.ggml.{end}_token_id") for end in ("eos", "eot")]
    ends = sorted({token_id for token_id in ids if token_id is not None})
    return ends if len(ends) > 1 else next(iter(ends), None)


def _rope_scaling(fields: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any] | None:
    if "rope_freqs.weight" in shapes:
        raise ModelError("tensor rope_freqs.weight (Llama 3.1's rotary scaling) is not supported; use the MLX model")
    kind = fields.get("rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind != "linear":
        raise ModelError(f"rope.scaling.type {kind!r} is not supported in GGUF files; only 'none' and 'linear' are")
    return {"rope_type": "linear", "factor": fields.get("rope.scaling.factor", 1.0)}


def _quantization(tensors: tuple[GgufTensor, ...]) -> dict[str, Any] | None:
    """MLX's entry: the most common width for all, and one for each module of another width."""
    bits = {_module_path(t.name): _QUANTIZED_BITS[t.type_name] for t in tensors if t.type_name in _QUANTIZED_BITS}
    if not bits:
        return None
    usual = max(set(bits.values()), key=list(bits.values()).count)
    exceptions = {path: _affine(width) for path, width in bits.items() if width != usual}
    return {**_affine(usual), **exceptions}


def _affine(bits: int) -> dict[str, Any]:
    return {"group_size": GROUP_SIZE, "bits": bits, "mode": "affine"}


def _weights(gguf: Path, header: GgufHeader, config: Mapping[str, Any]) -> dict[str, mx.array]:
    """All tensors under Hugging Face names, in one floating-point type.

    Scales and norms differ in type within a file, and with mixed types each reader would round elsewhere.
    """
    dtype = _common_dtype(header.tensors)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights = {}
    stored: Any = mx.load(str(gguf))
    for name, array in stored.items():
        stem, suffix = name.rsplit(".", 1)
        part = stem.rsplit(".", 1)[-1]
        if config["model_type"] == "llama" and part in heads:
            array = _unpermuted(array, heads[part])
        weights[f"{_module_path(name)}.{suffix}"] = array if array.dtype == mx.uint32 else array.astype(dtype)
    return weights


def _common_dtype(tensors: tuple[GgufTensor, ...]) -> mx.Dtype:
    """Half precision only if all matrices have the same; float32 holds everything else exactly."""
    matrix_types = {tensor.type_name for tensor in tensors if len(tensor.shape) > 1}
    return {"F16": mx.float16, "BF16": mx.bfloat16}.get("".join(matrix_types), mx.float32)


def _module_path(tensor_name: str) -> str:
    stem = tensor_name.rsplit(".", 1)[0]
    if stem in _TOP_NAMES:
        return _TOP_NAMES[stem]
    kind, _, rest = stem.partition(".")
    layer, _, part = rest.partition(".")
    if kind != "blk" or part not in _LAYER_NAMES:
        raise ModelError(f"GGUF tensor {tensor_name!r} is not part of a {'/'.join(FAMILIES)} model")
    return f"model.layers.{layer}.{_LAYER_NAMES[part]}"


def _unpermuted(rows: mx.array, num_heads: int) -> mx.array:
    """Rows of one query or key matrix (or its scales or bias) from neighbouring pairs to half before half."""
    pairs = rows.reshape(num_heads, rows.shape[0] // num_heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _quotient(total: int | None, parts: int | None) -> int | None:
    return total // parts if total and parts else None


def _shortest_float32(value: float | None) -> float | None:
    """9.999999747378752e-06, which is float32's nearest to it, back to 1e-05."""
    return None if value is None else float(f"{value:.7g}")
