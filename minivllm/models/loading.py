"""Load a model: resolve its name, check its files, fill a decoder, and evaluate everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlx.utils import tree_flatten

from minivllm.backend import is_cpu, mx, nn
from minivllm.models.decoder import Decoder
from minivllm.models.errors import ModelError
from minivllm.models.registry import resolve
from minivllm.models.spec import ModelSpec
from minivllm.models.tokenizer import Tokenizer, load_tokenizer
from minivllm.models.weights import (
    TensorInfo,
    read_json,
    read_tensor_infos,
    require_same_tensors,
    weight_files,
    weights_digest,
)

_FLOAT_DTYPES = ("F32", "F16", "BF16")
_QUANTIZABLE = (nn.Linear, nn.Embedding)


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run: every array is evaluated, so its files may change and another thread may own it.

    `weights_id` is a digest of the weights' content and the spec; `path` is the folder that was read.
    """

    model: Decoder
    tokenizer: Tokenizer
    spec: ModelSpec
    path: Path
    name: str
    weights_id: str


def load_model(name: str) -> LoadedModel:
    """Load by registry name, folder, `.gguf` file or Hub id; ModelError says what cannot be used and why."""
    folder = resolve(name)
    config = read_json(folder / "config.json")
    files = weight_files(folder)
    found = {key: info for key, info in read_tensor_infos(files).items() if not key.endswith("rotary_emb.inv_freq")}
    config.setdefault("tie_word_embeddings", not any(key.startswith("lm_head.") for key in found))
    spec = ModelSpec.from_config(config)
    if spec.tie_word_embeddings:  # some files repeat the embedding under this name
        found = {key: info for key, info in found.items() if not key.startswith("lm_head.")}
    tokenizer = load_tokenizer(folder, config)
    _require_vocabulary(tokenizer, spec)
    weights_id = weights_digest(files, spec)
    model = _filled_decoder(spec, files, found)
    return LoadedModel(model, tokenizer, spec, folder, name, weights_id)


def _filled_decoder(spec: ModelSpec, files: list[Path], found: Mapping[str, TensorInfo]) -> Decoder:
    model = Decoder(spec)
    if spec.quantization:
        _quantize_modules(model, spec.quantization, found)
    parameters: Any = tree_flatten(model.parameters())
    expected = {name: array.shape for name, array in parameters}
    require_same_tensors(expected, found)
    _require_dtypes(model, found)
    for file in files:  # lazily: nothing is read before it is evaluated below
        stored: Any = mx.load(str(file))
        model.load_weights([(name, stored[name]) for name in stored.keys() & expected.keys()], strict=False)
    del stored
    if is_cpu:
        _convert_to_float32(model)
    mx.eval(model.parameters())
    model.prepare()
    mx.eval(model)  # as a tree of everything, tables of rotary frequencies included, which are no parameters
    return model


def _quantize_modules(model: nn.Module, quantization: Mapping[str, Any], found: Mapping[str, TensorInfo]) -> None:
    """Put empty quantized modules where the weights are stored quantized, as their config entry says."""
    usual = {"group_size": quantization["group_size"], "bits": quantization["bits"]}

    def settings(path: str, module: nn.Module) -> dict[str, Any] | bool:
        entry = quantization.get(path, usual)
        if not isinstance(module, _QUANTIZABLE) or f"{path}.scales" not in found or not entry:
            return False
        if module.weight.shape[-1] % entry["group_size"]:
            raise ModelError(
                f"group_size {entry['group_size']} of {path} does not divide its shape {module.weight.shape}"
            )
        return {"group_size": entry["group_size"], "bits": entry["bits"]}

    nn.quantize(model, class_predicate=settings)


def _require_dtypes(model: nn.Module, found: Mapping[str, TensorInfo]) -> None:
    packed = {f"{path}.weight" for path, module in model.named_modules() if "scales" in module}
    for name, info in found.items():
        allowed = ("U32",) if name in packed else _FLOAT_DTYPES
        if info.dtype not in allowed:
            raise ModelError(f"tensor {name} is stored as {info.dtype}; only {', '.join(allowed)} can be used there")


def _require_vocabulary(tokenizer: Tokenizer, spec: ModelSpec) -> None:
    """Refuse ids that the embedding has no row for: MLX would read other memory without an error."""
    if tokenizer.vocab_size > spec.vocab_size:
        raise ModelError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, more than config.json's vocab_size "
            f"{spec.vocab_size}; the folder mixes two models"
        )


def _convert_to_float32(model: nn.Module) -> None:
    """On a CPU only float32 products are fast. Module by module: never a second copy of all weights."""
    plain = [(path, _dequantized(module)) for path, module in model.named_modules() if "scales" in module]
    for path, module in plain:
        mx.eval(module.parameters())
        _replace(model, path, module)
    model.apply(lambda array: array.astype(mx.float32))


def _dequantized(module: nn.Module) -> nn.Module:
    scales, biases = module.scales.astype(mx.float32), module.biases.astype(mx.float32)
    weight = mx.dequantize(module.weight, scales, biases, module.group_size, module.bits)
    if isinstance(module, nn.QuantizedEmbedding):
        embedding = nn.Embedding(1, 1)
        embedding.weight = weight
        return embedding
    linear = nn.Linear(1, 1, bias=False)
    linear.weight = weight
    if "bias" in module:
        linear.bias = module.bias
    return linear


def _replace(model: nn.Module, path: str, module: nn.Module) -> None:
    """Put `module` in the place that a dotted path names; numbers index lists."""
    *parents, last = path.split(".")
    owner: Any = model
    for part in parents:
        owner = owner[int(part)] if isinstance(owner, list) else owner[part]
    owner[last] = module
