"""Settings are checked where they are made; an error names the field, the value and what would be right."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from minivllm import config as config_module
from minivllm.config import CHOICES, GIB, ConfigError, EngineConfig, SamplingParams, default_kv_cache_bytes

BAD_ENGINE_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"page_size": 0}, "page_size=0 must be at least 1"),
    ({"page_size": 16.0}, "page_size=16.0 is not a whole number"),
    ({"page_size": True}, "page_size=True is not a whole number"),
    ({"page_size": None}, "page_size=None is not a whole number"),
    ({"num_pages": 0}, "num_pages=0 must be at least 1"),
    ({"num_pages": -4}, "num_pages=-4 must be at least 1"),
    ({"num_pages": "8"}, "num_pages='8' is not a whole number"),
    ({"kv_cache_bytes": 0}, "kv_cache_bytes=0 must be at least 1"),
    ({"kv_cache_bytes": 1.5}, "kv_cache_bytes=1.5 is not a whole number"),
    ({"max_model_len": 0}, "max_model_len=0 must be at least 1"),
    ({"max_batched_tokens": 0}, "max_batched_tokens=0 must be at least 1"),
    ({"max_active_requests": 0}, "max_active_requests=0 must be at least 1"),
    ({"num_pages": 8, "kv_cache_bytes": 4096}, "num_pages=8 and kv_cache_bytes=4096 both size the page pool"),
    ({"prefix_cache": "no"}, "prefix_cache='no' is not a truth value: give True or False"),
    ({"prefix_cache": 0}, "prefix_cache=0 is not a truth value"),
    ({"debug_poison_pages": None}, "debug_poison_pages=None is not a truth value"),
    ({"prefix_ttl_s": 0}, "prefix_ttl_s=0 must be above 0 seconds; None keeps pages until evicted"),
    ({"prefix_ttl_s": -1.0}, "prefix_ttl_s=-1.0 must be above 0 seconds"),
    ({"prefix_ttl_s": float("nan")}, "prefix_ttl_s=nan is not a finite number"),
    ({"prefix_ttl_s": "5"}, "prefix_ttl_s='5' is not a finite number"),
    *(({name: "magic"}, f"{name}='magic' is not one of {', '.join(allowed)}") for name, allowed in CHOICES.items()),
    ({"kv_bits": 16}, "kv_bits=16 is not one of 8, 4"),
    ({"kv_bits": True}, "kv_bits=True is not one of 8, 4"),
    ({"kv_group_size": 48}, "kv_group_size=48 is not one of 32, 64, 128"),
    ({"kv_group_size": None}, "kv_group_size=None is not a number"),
    ({"kv_bits": 8, "quantized_kv_start": -1}, "quantized_kv_start=-1 must be at least 0"),
    ({"quantized_kv_start": 256}, "quantized_kv_start=256 means nothing without kv_bits"),
    ({"num_slots": -1}, "num_slots=-1 must be at least 0"),
    ({"slot_save_path": ""}, "slot_save_path='' is not the name of a folder"),
    ({"slot_save_path": 7}, "slot_save_path=7 is not the name of a folder"),
    ({"publication": None}, "publication=None is not one of on_finish, after_prefill, incremental, on_schedule"),
]

BAD_SAMPLING_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": 0}, "max_tokens=0 must be at least 1"),
    ({"max_tokens": None}, "max_tokens=None is not a whole number"),
    ({"max_tokens": 1.0}, "max_tokens=1.0 is not a whole number"),
    ({"temperature": -0.1}, "temperature=-0.1 must lie between 0 (greedy) and 100"),
    ({"temperature": 101}, "temperature=101 must lie between"),
    ({"temperature": float("inf")}, "temperature=inf is not a finite number"),
    ({"temperature": float("nan")}, "temperature=nan is not a finite number"),
    ({"temperature": "hot"}, "temperature='hot' is not a finite number"),
    ({"temperature": True}, "temperature=True is not a finite number"),
    ({"top_p": 0}, "top_p=0 must be above 0 and at most 1"),
    ({"top_p": 1.01}, "top_p=1.01 must be above 0 and at most 1"),
    ({"top_p": None}, "top_p=None is not a finite number"),
    ({"seed": 1.5}, "seed=1.5 is not a whole number"),
    ({"seed": -(2**63) - 1}, "must be at least -9223372036854775808"),
    ({"logprobs": -1}, "logprobs=-1 must be at least 0"),
    ({"logprobs": True}, "logprobs=True is not a whole number"),
    ({"logprobs": 21}, "logprobs=21 asks for too many alternatives: at most 20"),
    ({"prompt_logprobs": 21}, "prompt_logprobs=21 asks for too many alternatives: at most 20"),
    ({"stop": [""]}, "stop='' is not a string of at least one character"),
    ({"stop": ""}, "stop='' is not a string of at least one character"),
    ({"stop": ["a", 5]}, "stop=5 is not a string of at least one character"),
    ({"stop": b"ab"}, "stop=97 is not a string of at least one character"),
    ({"stop": 5}, "stop=5 is not a list"),
    ({"stop": 0}, "stop=0 is not a list"),
    ({"stop": False}, "stop=False is not a list"),
    ({"stop_token_ids": 5}, "stop_token_ids=5 is not a list: give [5]"),
    ({"stop_token_ids": 0}, "stop_token_ids=0 is not a list: give [0]"),
    ({"stop_token_ids": ["5"]}, "stop_token_ids holds '5', which is not a token id"),
    ({"stop_token_ids": "12"}, "stop_token_ids holds '1', which is not a token id"),
    ({"stop_token_ids": [True]}, "stop_token_ids holds True, which is not a token id"),
    ({"ignore_eos": "false"}, "ignore_eos='false' is not a truth value: give True or False"),
    ({"ignore_eos": None}, "ignore_eos=None is not a truth value"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_ENGINE_SETTINGS, ids=str)
def test_a_bad_engine_setting_is_refused_by_name_and_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        EngineConfig(**settings)


@pytest.mark.parametrize(("settings", "message"), BAD_SAMPLING_SETTINGS, ids=str)
def test_a_bad_sampling_setting_is_refused_by_name_and_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        SamplingParams(**settings)


def test_the_defaults_are_those_of_the_design() -> None:
    assert dataclasses.asdict(EngineConfig()) == {
        "page_size": 16,
        "num_pages": None,
        "kv_cache_bytes": None,
        "max_model_len": None,
        "max_batched_tokens": 256,
        "max_active_requests": 8,
        "prefix_cache": True,
        "prefix_ttl_s": None,
        "publication": "incremental",
        "single_flight": "page",
        "scheduling": "fcfs",
        "admission": "reserve",
        "eviction": "lru",
        "kv_dtype": "auto",
        "kv_bits": None,
        "kv_group_size": 64,
        "quantized_kv_start": 0,
        "attention": "auto",
        "num_slots": 4,
        "slot_save_path": None,
        "debug_poison_pages": False,
    }
    assert dataclasses.asdict(SamplingParams()) == {
        "max_tokens": 16,
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": None,
        "stop": (),
        "stop_token_ids": (),
        "ignore_eos": False,
        "logprobs": None,
        "prompt_logprobs": None,
    }


def test_values_at_the_edge_of_what_is_right_are_accepted() -> None:
    EngineConfig(page_size=1, num_pages=1, max_batched_tokens=1, max_active_requests=1, prefix_ttl_s=1e-9)
    SamplingParams(max_tokens=1, temperature=0, top_p=1e-9, seed=-(2**63), logprobs=0, prompt_logprobs=20)
    SamplingParams(temperature=100, top_p=1, seed=2**70)


def test_settings_cannot_be_changed_after_they_were_checked() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EngineConfig().page_size = 0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        SamplingParams().max_tokens = 0  # type: ignore[misc]


def test_a_copy_with_a_change_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="max_tokens=0"):
        dataclasses.replace(SamplingParams(stop="x"), max_tokens=0)
    assert dataclasses.replace(SamplingParams(stop="x"), max_tokens=3).stop_strings == ("x",)


@pytest.mark.parametrize(
    ("given", "right"), [("\n", ("\n",)), (["a", "bc"], ("a", "bc")), (iter("ab"), ("a", "b")), (None, ()), ([], ())]
)
def test_one_stop_string_or_several_become_a_tuple(given: Any, right: tuple[str, ...]) -> None:
    assert SamplingParams(stop=given).stop_strings == right


def test_stop_token_ids_become_a_tuple_that_keeps_token_zero() -> None:
    assert SamplingParams(stop_token_ids=[0, 7]).stop_ids == (0, 7)
    assert SamplingParams(stop_token_ids=iter([3])).stop_ids == (3,)
    assert SamplingParams(stop_token_ids=None).stop_ids == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(("memory_bytes", "right"), [(4 * GIB, GIB), (8 * GIB, 2 * GIB), (64 * GIB, 2 * GIB)])
def test_without_a_size_the_pool_is_a_quarter_of_memory_and_at_most_two_gib(
    monkeypatch: pytest.MonkeyPatch, memory_bytes: int, right: int
) -> None:
    monkeypatch.setattr(config_module, "physical_memory_bytes", lambda: memory_bytes)
    assert default_kv_cache_bytes() == right


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"stop": ["x"] * 65}, "stop has 65 entries: give at most 64"),
        ({"stop_token_ids": range(1025)}, "stop_token_ids has 1025 entries: give at most 1024"),
    ],
)
def test_what_would_be_compared_with_every_token_is_limited(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        SamplingParams(**settings)
