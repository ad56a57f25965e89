"""ModelSpec: the shape of a decoder, read from a Hugging Face or MLX `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minivllm.models.errors import ModelError

FAMILIES = ("llama", "qwen2", "qwen3")
ROPE_TYPES = ("default", "linear", "llama3", "yarn")
QUANTIZATION_CHOICES = {"bits": (2, 3, 4, 5, 6, 8), "group_size": (32, 64, 128)}  # what MLX has kernels for

_COUNTS = (
    *("num_layers", "hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim"),
    *("vocab_size", "max_position_embeddings"),
)

Config = Mapping[str, Any]


@dataclass(frozen=True)
class ModelSpec:
    """What a decoder of the Llama, Qwen2 and Qwen3 families needs to know to be built.

    `rope_scaling` is None for plain rotary positions, else the config's own dict with `rope_type` filled in.
    `quantization` is MLX's dict: `group_size`, `bits`, and an entry (or False) per module path that differs.
    """

    family: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    rope_scaling: dict[str, Any] | None = None
    rope_traditional: bool = False
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    quantization: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ModelError(f"model_type {self.family!r} is not supported; use a model of {', '.join(FAMILIES)}")
        for name in _COUNTS:
            _require_positive_int(name, getattr(self, name))
        for name in ("rms_norm_eps", "rope_theta"):
            _require_positive_number(name, getattr(self, name))
        if self.num_heads % self.num_kv_heads:
            raise ModelError(
                f"{self.num_heads} query heads (num_attention_heads) cannot share {self.num_kv_heads} "
                "(num_key_value_heads) evenly"
            )
        if self.head_dim % 2:
            raise ModelError(f"head_dim {self.head_dim} is odd; rotary positions need an even one")

    @property
    def kv_size(self) -> int:
        """Values per token in the keys (and again in the values) of one layer."""
        return self.num_kv_heads * self.head_dim

    @classmethod
    def from_config(cls, config: Config) -> ModelSpec:
        """The spec that a `config.json` describes; ModelError names what is missing or not supported."""
        family = _family(config)
        _refuse_other_architectures(config)
        _refuse_windows(config)
        num_heads = _field(config, "num_attention_heads")
        hidden_size = _field(config, "hidden_size")
        bias = bool(config.get("attention_bias", False))
        rope_theta, rope_scaling = _rope(config)
        return cls(
            family=family,
            num_layers=_field(config, "num_hidden_layers"),
            hidden_size=hidden_size,
            intermediate_size=_field(config, "intermediate_size"),
            num_heads=num_heads,
            num_kv_heads=_default(config, "num_key_value_heads", num_heads),
            head_dim=_head_dim(config, hidden_size, num_heads),
            vocab_size=_field(config, "vocab_size"),
            rms_norm_eps=_field(config, "rms_norm_eps"),
            rope_theta=rope_theta,
            max_position_embeddings=_field(config, "max_position_embeddings"),
            rope_scaling=rope_scaling,
            rope_traditional=bool(config.get("rope_traditional", False)),
            tie_word_embeddings=bool(_default(config, "tie_word_embeddings", True)),
            attention_bias=family == "qwen2" or bias,  # Qwen2 has these biases whatever its config says
            output_bias=family != "qwen2" and bias,
            mlp_bias=family == "llama" and bool(config.get("mlp_bias", False)),
            qk_norm=family == "qwen3",
            quantization=_quantization(config),
        )


def _require_positive_int(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelError(f"{name} is {value!r}; the model's config.json must give one integer above 0 for all layers")


def _require_positive_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ModelError(f"{name} is {value!r}; the model's config.json must give a number above 0")


def _field(config: Config, name: str) -> Any:
    if config.get(name) is None:
        raise ModelError(f"config.json has no {name!r}; it must be the complete config of a {'/'.join(FAMILIES)} model")
    return config[name]


def _default(config: Config, name: str, default: Any) -> Any:
    """A field that a config may leave out or set to null."""
    value = config.get(name)
    return default if value is None else value


def _family(config: Config) -> str:
    family = config.get("model_type")
    if family in FAMILIES:
        return str(family)
    raise ModelError(f"model_type {family!r} is not supported; use a model of one of {', '.join(FAMILIES)}")


def _head_dim(config: Config, hidden_size: Any, num_heads: Any) -> Any:
    if config.get("head_dim") is not None:
        return config["head_dim"]
    _require_positive_int("hidden_size", hidden_size)
    _require_positive_int("num_attention_heads", num_heads)
    if hidden_size % num_heads:
        raise ModelError(
            f"hidden_size {hidden_size} is not a multiple of num_attention_heads {num_heads}, and no head_dim"
        )
    return hidden_size // num_heads


def _refuse_other_architectures(config: Config) -> None:
    """Fields under which a supported model_type still computes something that this decoder does not."""
    activation = _default(config, "hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise ModelError(f"hidden_act {activation!r} is not supported; only 'silu' is")
    rotary_share = _default(config, "partial_rotary_factor", 1.0)
    if rotary_share != 1.0:
        raise ModelError(f"partial_rotary_factor {rotary_share} is not supported; only 1.0 is")
    value_head_dim = config.get("v_head_dim")
    if value_head_dim is not None and value_head_dim != config.get("head_dim"):
        raise ModelError(f"v_head_dim {value_head_dim} differs from the keys' head size; pages hold one head size")


def _refuse_windows(config: Config) -> None:
    """Refuse sliding-window layers: a page reused past the window holds keys that the model must not see."""
    other_layers = set(_default(config, "layer_types", ())) - {"full_attention"}
    if other_layers:
        raise ModelError(f"layer_types has {', '.join(sorted(other_layers))}; only full_attention layers are supported")
    window = config.get("sliding_window")
    in_use = config.get("use_sliding_window", config["model_type"] == "llama")  # Qwen configs name it and leave it off
    if window is None or config.get("layer_types") or not in_use:
        return
    raise ModelError(f"sliding_window {window}: models with a sliding window are not supported; use one without")


def _rope(config: Config) -> tuple[Any, dict[str, Any] | None]:
    """Rotary base and scaling, from the flat fields or from Transformers 5's `rope_parameters`."""
    nested = dict(config.get("rope_parameters") or {})
    theta = _default(config, "rope_theta", nested.pop("rope_theta", 10000.0))
    scaling = dict(config.get("rope_scaling") or nested)
    rope_type = scaling.pop("type", "default")
    rope_type = scaling.pop("rope_type", rope_type)
    if rope_type not in ROPE_TYPES:
        raise ModelError(f"rope_type {rope_type!r} is not supported; only {', '.join(ROPE_TYPES)} are")
    if scaling.pop("partial_rotary_factor", 1.0) != 1.0:
        raise ModelError(
            "partial_rotary_factor in rope_parameters is not 1.0; only full rotary positions are supported"
        )
    if rope_type == "default":
        return theta, None
    return theta, {"rope_type": rope_type, **scaling}


def _quantization(config: Config) -> dict[str, Any] | None:
    """MLX's quantization entry; other tools' formats are refused by their name."""
    foreign = (config.get("quantization_config") or {}).get("quant_method")
    if foreign is not None:
        raise ModelError(f"quant_method {foreign!r} is not supported; use full-precision or MLX-quantized weights")
    quantization = config.get("quantization") or config.get("quantization_config")
    if not quantization:
        return None
    modules = [("quantization", quantization)]
    modules += [(path, entry) for path, entry in quantization.items() if isinstance(entry, dict)]
    for path, entry in modules:
        mode = entry.get("mode", "affine")
        if mode != "affine":
            raise ModelError(f"quantization mode {mode!r} of {path} is not supported; only 'affine' is")
        for name, choices in QUANTIZATION_CHOICES.items():
            if entry.get(name) not in choices:
                raise ModelError(f"{name} of {path} is {entry.get(name)!r}; MLX has {', '.join(map(str, choices))}")
    return dict(quantization)
