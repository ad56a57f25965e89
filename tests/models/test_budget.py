"""`minivllm memory`: bytes of public models, from their config files alone, by hand-checked arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minivllm.budget import human_bytes, memory_budget, parse_bytes, read_shape, shape_of
from minivllm.cli import main
from minivllm.config import GIB, ConfigError

CONFIGS = Path(__file__).parent / "configs"

# Parameters as their model cards give them; bytes of KV cache per token: 2 x layers x KV heads x head size x 2.
PUBLIC = {
    "llama-3.1-8b": (8_030_261_248, 2 * 32 * 8 * 128 * 2),
    "mistral-7b-v0.3": (7_248_023_552, 2 * 32 * 8 * 128 * 2),
    "mixtral-8x7b": (46_702_792_704, 2 * 32 * 8 * 128 * 2),
    "qwen2.5-0.5b": (494_032_768, 2 * 24 * 2 * 64 * 2),
    "qwen3-8b": (8_190_735_360, 2 * 36 * 8 * 128 * 2),
    "smollm2-135m": (134_515_008, 2 * 30 * 3 * 64 * 2),
}


def test_every_config_file_is_checked() -> None:
    assert {file.stem for file in CONFIGS.glob("*.json")} == set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_and_bytes_per_token_of_a_public_model(name: str) -> None:
    shape = read_shape(CONFIGS / f"{name}.json")
    num_parameters, bytes_per_token = PUBLIC[name]
    budget = memory_budget(shape, context_tokens=1_000, budget_bytes=200 * GIB)
    assert (shape.num_parameters, budget.bytes_per_token) == (num_parameters, bytes_per_token)
    assert budget.weights_bytes == 2 * num_parameters
    assert budget.conversation_bytes == 1_008 * bytes_per_token, "whole pages"


@pytest.mark.parametrize(
    ("kv_bits", "bytes_per_token"), [(32, 294_912), (16, 147_456), (8, 73_728 + 4_608), (4, 36_864 + 4_608)]
)
def test_a_model_of_36_layers_and_8_heads_of_128_at_each_number_of_bits(kv_bits: int, bytes_per_token: int) -> None:
    shape = read_shape(CONFIGS / "qwen3-8b.json")
    budget = memory_budget(shape, context_tokens=32_768, kv_bits=kv_bits, budget_bytes=24 * GIB)
    assert budget.bytes_per_token == bytes_per_token
    room = 24 * GIB - budget.weights_bytes - budget.buffers_bytes
    assert budget.num_conversations == room // (bytes_per_token * 32_768)


def test_the_command_says_it_for_a_person_and_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["memory", "--model", str(CONFIGS / "qwen3-8b.json"), "--context", "32768", "--budget", "24GiB"]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "147,456 bytes per token" in told
    assert "4.5 GiB (4.8 GB) for one conversation of 32,768 tokens" in told
    assert main([*arguments, "--kv-bits", "4", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["bytes_per_token"], record["num_conversations"]) == (41_472, 6)


def test_weights_that_do_not_fit_leave_room_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--model", str(CONFIGS / "llama-3.1-8b.json"), "--budget", "8GB"]) == 0
    told = capsys.readouterr().out
    assert "0 conversations" in told and "exceed the budget by" in told


def test_a_text_config_inside_a_multimodal_one_is_taken_and_windows_are_told() -> None:
    text = json.loads((CONFIGS / "qwen3-8b.json").read_text(encoding="utf-8"))
    nested = {"model_type": "qwen3_vl", "text_config": {**text, "layer_types": ["full_attention", "sliding_attention"]}}
    shape = shape_of(nested)
    assert shape.num_layers == 36
    assert shape.notes == ("1 layers do not attend to everything and need less than is counted here",)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "num_attention_heads is None"),
        ({"num_attention_heads": True}, "num_attention_heads is True"),
        ({"num_attention_heads": 8, "hidden_size": -1}, "hidden_size is -1"),
        ({"kv_lora_rank": 512}, "latent vector in the place of keys and values"),
    ],
)
def test_a_config_that_cannot_be_counted_is_refused_by_field(config: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        shape_of(config)


@pytest.mark.parametrize("content", [b"not json", b"[1]", b"\xff\xfe"])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"give a model's config\.json, or its folder"):
        read_shape(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--budget", "lots"], "'lots' is no number of bytes"),
        (["--budget", "0"], "give at least 1"),
        (["--context", "0"], "context=0 must be at least 1"),
        (["--kv-bits", "8", "--kv-group-size", "128", "--model", "smollm2-135m.json"], "kv_group_size 32 or 64"),
        (["--model", "nowhere.json"], "there is no file"),
    ],
)
def test_wrong_usage_is_told_with_the_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(CONFIGS)
    assert main(["memory", "--model", "qwen3-8b.json", *arguments]) in (1, 2)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("24GiB", 24 * GIB),
        ("24GB", 24 * 10**9),
        ("1.5 MiB", 1_572_864),
        ("1000", 1_000),
        ("512 kb", 512_000),
        ("7B", 7),
    ],
)
def test_bytes_are_read_in_binary_and_decimal_units(text: str, right: int) -> None:
    assert parse_bytes(text) == right


def test_bytes_are_written_in_both() -> None:
    assert human_bytes(147_456 * 32_768) == "4.5 GiB (4.8 GB)"
    assert human_bytes(999) == "999 B"
    assert human_bytes(-3 * GIB) == "-3.0 GiB (-3.2 GB)"
