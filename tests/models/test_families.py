"""Each family in its real file layout gives the logits of stock mlx-lm on the same folder."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from minivllm.backend import mx
from minivllm.models.loading import load_model
from tests.models.folders import (
    change_config,
    config_of,
    distance,
    logits,
    oracle_logits,
    random_weights,
    save_weights,
    write_folder,
)

pytestmark = pytest.mark.usefixtures("own_home")

FLOAT32_TOLERANCE = 2e-5  # of the logits' spread
QUANTIZED_TOLERANCE = 2e-4  # products of packed weights sum in another order
HALF_TOLERANCE = 0.1  # mlx-lm computes in half precision, we in float32 on a CPU

LAYOUTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama untied": {"tie_word_embeddings": False},
    "llama with biases": {"attention_bias": True, "mlp_bias": True},
    "llama without head_dim": {"head_dim": None},
    "llama with linear scaling": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "llama 3.1": {
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 256,
        }
    },
    "qwen2": {"use_sliding_window": False, "sliding_window": 1024},
    "qwen2 untied": {"tie_word_embeddings": False},
    "qwen3": {},
    "qwen3 untied": {"tie_word_embeddings": False, "head_dim": 32},
}


def layout(name: str) -> dict[str, Any]:
    family = name.split()[0]
    changes = {key: value for key, value in LAYOUTS[name].items() if value is not None}
    config = config_of(family, **changes)
    return {key: value for key, value in config.items() if key not in LAYOUTS[name] or key in changes}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_gives_the_logits_of_mlx_lm(name: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", layout(name))
    ours, theirs = logits(load_model(str(folder))), oracle_logits(folder)
    assert ours.shape == theirs.shape and theirs.std().item() > 0.1
    assert distance(ours, theirs) < FLOAT32_TOLERANCE


@pytest.mark.parametrize("name", ["llama untied", "qwen2", "qwen3"])
def test_quantized_modules_with_widths_of_their_own_give_the_logits_of_mlx_lm(name: str, tmp_path: Path) -> None:
    quantization = {
        "group_size": 32,
        "bits": 4,
        "model.embed_tokens": {"group_size": 64, "bits": 8},
        "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 6},
        "model.layers.1.self_attn.k_proj": False,
    }
    folder = write_folder(tmp_path / "model", {**layout(name), "quantization": quantization})
    assert distance(logits(load_model(str(folder))), oracle_logits(folder)) < QUANTIZED_TOLERANCE


def test_half_precision_weights_give_about_the_logits_of_mlx_lm(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", config_of("qwen3"), dtype=mx.bfloat16)
    assert distance(logits(load_model(str(folder))), oracle_logits(folder)) < HALF_TOLERANCE


def test_shards_are_read_as_one_model(tmp_path: Path) -> None:
    whole = write_folder(tmp_path / "whole", config_of("qwen2"))
    sharded = write_folder(tmp_path / "sharded", config_of("qwen2"), num_shards=3)
    assert len(list(sharded.glob("*.safetensors"))) == 3
    assert mx.array_equal(logits(load_model(str(whole))), logits(load_model(str(sharded))))


def test_a_repeated_head_of_a_tied_model_is_ignored_as_mlx_lm_does(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", config_of("llama"))
    weights = random_weights(config_of("llama"))
    save_weights(folder, {**weights, "lm_head.weight": mx.zeros((520, 64))})
    assert distance(logits(load_model(str(folder))), oracle_logits(folder)) < FLOAT32_TOLERANCE


def test_a_config_that_does_not_say_whether_it_is_tied_follows_its_weights(tmp_path: Path) -> None:
    tied = write_folder(tmp_path / "tied", config_of("llama"))
    untied = write_folder(tmp_path / "untied", config_of("llama", tie_word_embeddings=False))
    for folder in (tied, untied):
        change_config(folder, tie_word_embeddings=None)
    assert load_model(str(tied)).spec.tie_word_embeddings
    assert not load_model(str(untied)).spec.tie_word_embeddings


def test_rotary_settings_are_read_from_the_nested_form_too(tmp_path: Path) -> None:
    flat = write_folder(tmp_path / "flat", config_of("qwen3", rope_theta=5000.0))
    nested = write_folder(tmp_path / "nested", config_of("qwen3", rope_theta=5000.0))
    change_config(nested, rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 5000.0})
    assert load_model(str(flat)).spec == load_model(str(nested)).spec


def test_a_loaded_model_does_not_change_with_its_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", config_of("llama"))
    loaded = load_model(str(folder))
    with open(folder / "model.safetensors", "r+b") as stream:
        size = stream.seek(0, 2)
        stream.seek(size // 2)
        stream.write(b"\xff" * (size - size // 2))
    assert not mx.isnan(logits(loaded)).any()


def test_a_model_loaded_in_one_thread_runs_in_another(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", layout("llama 3.1"))
    loaded = load_model(str(folder))
    theirs = oracle_logits(folder)
    mx.eval(theirs)
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(distance(logits(loaded), theirs))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert isinstance(results[0], float) and results[0] < FLOAT32_TOLERANCE, results
