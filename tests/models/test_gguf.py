"""A `.gguf` file becomes the model that it was written from, for us and for stock mlx-lm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minivllm.backend import mx
from minivllm.models.errors import ModelError
from minivllm.models.loading import load_model
from minivllm.models.registry import resolve
from minivllm.models.tiny import SPECIAL_TOKENS, tiny_folder
from tests.models.folders import (
    config_of,
    distance,
    logits,
    oracle_logits,
    random_weights,
    save_weights,
    write_folder,
)
from tests.models.gguf_writer import gguf_name, permuted, quantized, write_gguf

pytestmark = pytest.mark.usefixtures("own_home")

TOLERANCE = 2e-4
TEMPLATE = "{% for message in messages %}<|turn|>{{ message['content'] }}<|end|>{% endfor %}"


def metadata_of(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What llama.cpp writes about a model of this config, with the tokenizer of `tiny`."""
    family = config["model_type"]
    tokenizer = json.loads((tiny_folder() / "tokenizer.json").read_text())
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__)
    tokens += [f"[PAD{index}]" for index in range(len(tokens), config["vocab_size"] - 1)]
    tokens.append("<|endoftext|>")  # which Transformers' Qwen tokenizers add where it is missing
    metadata = {
        "general.architecture": family,
        f"{family}.block_count": config["num_hidden_layers"],
        f"{family}.embedding_length": config["hidden_size"],
        f"{family}.feed_forward_length": config["intermediate_size"],
        f"{family}.attention.head_count": config["num_attention_heads"],
        f"{family}.attention.head_count_kv": config["num_key_value_heads"],
        f"{family}.attention.key_length": config["head_dim"],
        f"{family}.attention.value_length": config["head_dim"],
        f"{family}.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        f"{family}.rope.freq_base": config["rope_theta"],
        f"{family}.context_length": config["max_position_embeddings"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm" if family == "llama" else "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tokenizer["model"]["merges"]],
        "tokenizer.ggml.token_type": [_token_type(token) for token in tokens],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
    kept = {**metadata, **changes}
    return {key: value for key, value in kept.items() if value is not None}


def _token_type(token: str) -> int:
    return 3 if token in SPECIAL_TOKENS else 5 if token.startswith("[PAD") else 1


def write_pair(folder: Path, config: dict[str, Any], matrix_type: str, **changes: Any) -> tuple[Path, Path]:
    """A `.gguf` file, and a plain float32 folder with exactly the values that the file stands for."""
    plain = write_folder(folder / "plain", config)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    tensors, meant = {}, {}
    for name, array in random_weights(config).items():
        values = np.array(array)
        type_name = "F32" if values.ndim == 1 else "Q8_0" if name.startswith(("model.embed", "lm_")) else matrix_type
        if matrix_type.startswith("F") and values.ndim == 2:
            type_name = matrix_type
        _, meant[name] = quantized(values, type_name)
        part = name.split(".")[-2]
        rows = permuted(values, heads[part]) if config["model_type"] == "llama" and part in heads else values
        tensors[gguf_name(name)] = (type_name, values.shape, quantized(rows, type_name)[0])
    save_weights(plain, {name: mx.array(values) for name, values in meant.items()})
    gguf = folder / "model.gguf"
    write_gguf(gguf, metadata_of(config, **changes), tensors)
    return gguf, plain


@pytest.mark.parametrize("matrix_type", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_file_gives_the_logits_of_the_values_it_stands_for(family: str, matrix_type: str, tmp_path: Path) -> None:
    gguf, plain = write_pair(tmp_path, config_of(family), matrix_type)
    assert distance(logits(load_model(str(gguf))), oracle_logits(plain)) < (0.02 if matrix_type == "F16" else TOLERANCE)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_stock_mlx_lm_loads_the_converted_folder(family: str, tmp_path: Path) -> None:
    gguf, plain = write_pair(tmp_path, config_of(family, tie_word_embeddings=False), "Q4_1")
    converted = resolve(str(gguf))
    assert distance(oracle_logits(converted), oracle_logits(plain)) < TOLERANCE
    quantization = json.loads((converted / "config.json").read_text())["quantization"]
    assert quantization["bits"] == 4 and quantization["model.embed_tokens"]["bits"] == 8


def test_biases_of_the_llama_family_are_put_back_in_order_too(tmp_path: Path) -> None:
    gguf, plain = write_pair(tmp_path, config_of("llama", attention_bias=True), "Q8_0")
    assert distance(logits(load_model(str(gguf))), oracle_logits(plain)) < TOLERANCE


def test_a_file_is_converted_once_and_again_when_its_content_changes(tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "Q8_0")
    first = resolve(str(gguf))
    made_at = (first / "model.safetensors").stat().st_mtime_ns
    assert resolve(str(gguf)) == first and (first / "model.safetensors").stat().st_mtime_ns == made_at
    gguf.write_bytes(gguf.read_bytes()[:-1] + b"\x01")
    assert resolve(str(gguf)) != first


def test_the_tokenizer_is_rebuilt_from_the_file(tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "Q8_0")
    rebuilt, tiny = load_model(str(gguf)).tokenizer, load_model("tiny").tokenizer
    text = "The first request is cold; ships don't ask.\n  Ünïcode ☃<|end|>"
    assert rebuilt.encode(text) == tiny.encode(text, add_special_tokens=False)
    assert rebuilt.decode(rebuilt.encode(text)) == text.removesuffix("<|end|>")
    assert rebuilt.render_chat([{"role": "user", "content": "hi"}]) == "<|turn|>hi<|end|>"
    assert rebuilt.eos_token_ids == {1}


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("smollm", ["a", "1", "2", "3", "4", "Ġb", "'ll", "ĠC"]),
        ("qwen2", ["a", "1", "2", "3", "4", "Ġb", "'ll", "ĠC"]),
        ("llama-bpe", ["a", "123", "4", "Ġb", "'ll", "ĠC"]),
    ],
)
def test_text_is_split_as_the_file_names_it(pre: str, pieces: list[str], tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "F32", **{"tokenizer.ggml.pre": pre})
    stored = json.loads((resolve(str(gguf)) / "tokenizer.json").read_text())
    from tokenizers import Tokenizer

    splitter = Tokenizer.from_str(json.dumps(stored)).pre_tokenizer
    assert [piece for piece, _ in splitter.pre_tokenize_str("a1234 b'll C")] == pieces


def test_a_bos_is_added_where_the_file_asks_for_it(tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "F32", **{"tokenizer.ggml.add_bos_token": True})
    tokenizer = load_model(str(gguf)).tokenizer
    assert tokenizer.encode("a") == [0, *tokenizer.encode("a", add_special_tokens=False)]


def test_the_end_of_a_turn_ends_a_generation_too(tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "F32", **{"tokenizer.ggml.eot_token_id": 2})
    assert load_model(str(gguf)).tokenizer.eos_token_ids == {1, 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"general.architecture": "gemma3"}, "'gemma3'"),
        ({"tokenizer.ggml.pre": "gpt-4o"}, "tokenizer.ggml.pre 'gpt-4o'"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.model 'llama'"),
        ({"tokenizer.ggml.merges": None}, "tokenizer.ggml.merges"),
        ({"llama.rope.scaling.type": "yarn"}, "rope.scaling.type 'yarn'"),
        ({"llama.attention.sliding_window": 128}, "sliding_window 128"),
        ({"llama.attention.value_length": 32}, "v_head_dim 32"),
        ({"llama.block_count": None}, "num_hidden_layers"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_name(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "F32", **changes)
    with pytest.raises(ModelError, match=words):
        load_model(str(gguf))


def test_a_tensor_type_that_mlx_cannot_read_is_refused_by_name(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    write_gguf(gguf, metadata_of(config_of("llama")), {"token_embd.weight": ("Q4_K", (8, 256), b"\0" * 1152)})
    with pytest.raises(ModelError, match=r"token_embd\.weight has type Q4_K"):
        load_model(str(gguf))


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    gguf, _ = write_pair(tmp_path, config_of("llama"), "Q4_0")
    whole = gguf.read_bytes()
    for num_bytes in (5, 30, 2000, len(whole) // 2, len(whole) - 40):
        gguf.write_bytes(whole[:num_bytes])
        with pytest.raises(ModelError, match=r"truncated"):
            load_model(str(gguf))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(ModelError, match="not a GGUF file"):
        load_model(str(gguf))
    with pytest.raises(ModelError, match="there is no file"):
        load_model(str(tmp_path / "absent.gguf"))
