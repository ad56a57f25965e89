"""What cannot be run is refused by name before anything is computed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from minivllm.backend import mx
from minivllm.models.errors import ModelError
from minivllm.models.loading import load_model
from minivllm.models.registry import resolve
from minivllm.models.spec import ModelSpec
from tests.models.folders import change_config, config_of, random_weights, save_weights, write_folder

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "model", config_of("llama"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "gemma3"}, "model_type 'gemma3'"),
        ({"model_type": None}, "model_type None"),
        ({"hidden_size": None}, "no 'hidden_size'"),
        ({"rms_norm_eps": None}, "no 'rms_norm_eps'"),
        ({"num_attention_heads": [4, 2]}, r"num_heads is \[4, 2\]"),
        ({"num_key_value_heads": [2, 1]}, r"num_kv_heads is \[2, 1\]"),
        ({"num_key_value_heads": 3}, "4 query heads"),
        ({"v_head_dim": 32}, "v_head_dim 32"),
        ({"head_dim": 15}, "head_dim 15"),
        ({"sliding_window": 128}, "sliding_window 128"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types has sliding_attention"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type 'longrope'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quant_method 'gptq'"),
        ({"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}}, "mode 'mxfp4'"),
        ({"quantization": {"bits": 7, "group_size": 32}}, "bits of quantization is 7"),
        ({"quantization": {"bits": 4, "group_size": 32, "lm_head": {"bits": 4}}}, "group_size of lm_head is None"),
    ],
)
def test_a_config_that_the_decoder_does_not_compute_is_refused_by_its_field(
    changes: dict[str, Any], words: str, folder: Path
) -> None:
    change_config(folder, **changes)
    with pytest.raises(ModelError, match=words):
        load_model(str(folder))


def test_a_window_that_is_switched_off_is_no_window() -> None:
    off = config_of("qwen2", sliding_window=128, use_sliding_window=False)
    assert ModelSpec.from_config(off).family == "qwen2"
    with pytest.raises(ModelError, match="sliding_window 128"):
        ModelSpec.from_config({**off, "use_sliding_window": True})


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        load_model(str(folder))


def test_weights_in_another_format_are_named(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin"):
        load_model(str(folder))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", config_of("llama"), num_shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelError, match="model-00002-of-00003"):
        load_model(str(folder))


def test_truncated_weights_are_refused_wherever_they_end(folder: Path) -> None:
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    for num_bytes in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:num_bytes])
        with pytest.raises(ModelError, match=r"model\.safetensors is truncated"):
            load_model(str(folder))


def test_a_damaged_config_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        load_model(str(folder))


def test_a_damaged_tokenizer_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"the tokenizer in .* cannot be read"):
        load_model(str(folder))


def test_a_missing_tensor_is_named(folder: Path) -> None:
    weights = random_weights(config_of("llama"))
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_weights(folder, weights)
    with pytest.raises(ModelError, match=r"lack 1 tensors: model\.layers\.1\.mlp\.up_proj\.weight"):
        load_model(str(folder))


def test_a_tensor_that_no_module_takes_is_named(folder: Path) -> None:
    save_weights(folder, {**random_weights(config_of("llama")), "model.layers.0.self_attn.sinks": mx.zeros(4)})
    with pytest.raises(ModelError, match=r"1 tensors .*self_attn\.sinks"):
        load_model(str(folder))


def test_a_tensor_of_another_shape_is_named(folder: Path) -> None:
    change_config(folder, intermediate_size=128)
    with pytest.raises(ModelError, match=r"mlp\.\w+_proj\.weight has shape"):
        load_model(str(folder))


def test_a_tensor_of_another_type_is_named(folder: Path) -> None:
    weights = random_weights(config_of("llama"))
    weights["model.norm.weight"] = mx.ones(64, mx.int32)
    save_weights(folder, weights)
    with pytest.raises(ModelError, match=r"model\.norm\.weight is stored as I32"):
        load_model(str(folder))


def test_more_tokens_than_embeddings_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", config_of("llama", vocab_size=400))
    with pytest.raises(ModelError, match=r"512 tokens, more than config\.json's vocab_size 400"):
        load_model(str(folder))


def test_an_unknown_name_lists_what_would_be_right() -> None:
    with pytest.raises(ModelError, match=r"'smollm3' is not known .*: use smollm2-135m, tiny"):
        load_model("smollm3")


def test_the_weights_id_follows_content_and_not_place(tmp_path: Path) -> None:
    first = write_folder(tmp_path / "a", config_of("llama"))
    same = write_folder(tmp_path / "b", config_of("llama"))
    other = write_folder(tmp_path / "c", config_of("llama"), seed=1)
    stretched = write_folder(tmp_path / "d", config_of("llama", rope_theta=20000.0))
    named = write_folder(tmp_path / "e", config_of("llama", _name_or_path="elsewhere"))
    ids = {name: load_model(str(name)).weights_id for name in (first, same, other, stretched, named)}
    assert ids[first] == ids[same] == ids[named]
    assert len(set(ids.values())) == 3


def test_the_weights_id_is_remembered_but_not_for_changed_files(folder: Path, own_home: Path) -> None:
    before = load_model(str(folder)).weights_id
    assert json.loads((own_home / "file-digests.json").read_text())["values"]
    save_weights(folder, random_weights(config_of("llama"), seed=5))
    assert load_model(str(folder)).weights_id != before


def test_a_mistyped_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ModelError, match=r"did you mean 'smollm2-135m'\?"):
        resolve("smollm-135m")


def test_a_mistyped_folder_is_named_with_its_whole_path(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=re.escape(f"there is no folder {tmp_path / 'nofolder'}")):
        resolve(str(tmp_path / "nofolder"))
