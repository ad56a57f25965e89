"""Tiny random models of each family, saved by stock mlx-lm in the layout of the real files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlx.utils import tree_flatten, tree_map
from mlx_lm.models import llama, qwen2, qwen3
from mlx_lm.utils import load_model as load_oracle

from minivllm.backend import mx, nn  # first: it loads the BLAS before MLX
from minivllm.models.loading import LoadedModel
from minivllm.models.tiny import write_tiny

FAMILIES = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3}
PROMPT = [0, 2, 349, 267, 201, 323, 1, 201, 2, 337, 348, 381, 201]


def config_of(family: str, **changes: Any) -> dict[str, Any]:
    config = {
        "model_type": family,
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 520,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "eos_token_id": 1,
    }
    return {**config, **changes}


def write_folder(
    folder: Path, config: dict[str, Any], *, dtype: mx.Dtype = mx.float32, num_shards: int = 1, seed: int = 0
) -> Path:
    """Write a random model: the tokenizer of `tiny`, config.json, and weights in `num_shards` files."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tiny(folder)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").write_text(json.dumps(config))
    save_weights(folder, random_weights(config, dtype, seed), num_shards)
    return folder


def random_weights(config: dict[str, Any], dtype: mx.Dtype = mx.float32, seed: int = 0) -> dict[str, mx.array]:
    """Parameters of mlx-lm's model, biases and norms included, quantized as the config says."""
    module = FAMILIES[config["model_type"]]
    model = module.Model(module.ModelArgs.from_dict(config))
    mx.random.seed(seed)
    model.update(tree_map(lambda array: (mx.random.normal(array.shape) * 0.3).astype(dtype), model.parameters()))
    if quantization := config.get("quantization"):
        usual = {"group_size": quantization["group_size"], "bits": quantization["bits"]}

        def entry(path: str, layer: nn.Module) -> dict[str, Any] | bool:
            return hasattr(layer, "to_quantized") and quantization.get(path, usual)

        nn.quantize(model, class_predicate=entry)
    weights = dict(tree_flatten(model.parameters()))
    mx.eval(weights)
    return weights


def save_weights(folder: Path, weights: dict[str, mx.array], num_shards: int = 1) -> None:
    if num_shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
        return
    names = sorted(weights)
    weight_map = {}
    for shard in range(num_shards):
        file = f"model-{shard + 1:05d}-of-{num_shards:05d}.safetensors"
        part = {name: weights[name] for name in names[shard::num_shards]}
        mx.save_safetensors(str(folder / file), part, {"format": "mlx"})
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def change_config(folder: Path, **changes: Any) -> None:
    """Set fields of a folder's config.json; None takes one away."""
    config = json.loads((folder / "config.json").read_text()) | changes
    kept = {key: value for key, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))


def logits(loaded: LoadedModel, token_ids: list[int] = PROMPT) -> mx.array:
    """Our decoder's logits [tokens, vocabulary] of one sequence, with plain causal attention for pages."""

    def attend(layer: int, queries: mx.array, keys: mx.array, values: mx.array) -> mx.array:
        heads_first = (x.swapaxes(0, 1)[None] for x in (queries, keys, values))
        scale = queries.shape[-1] ** -0.5
        out = mx.fast.scaled_dot_product_attention(*heads_first, scale=scale, mask="causal")
        return out[0].swapaxes(0, 1)

    hidden = loaded.model(mx.array(token_ids), mx.arange(len(token_ids)), attend)
    return loaded.model.logits(hidden)


def oracle_logits(folder: Path, token_ids: list[int] = PROMPT) -> mx.array:
    """Stock mlx-lm's logits [tokens, vocabulary] for the same folder."""
    model, _ = load_oracle(folder)
    return model(mx.array([token_ids]))[0]


def distance(ours: mx.array, theirs: mx.array) -> float:
    """The largest difference of two sets of logits, as a share of their spread."""
    return float((mx.abs(ours - theirs).max() / theirs.std()).item())
