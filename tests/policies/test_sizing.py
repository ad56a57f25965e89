"""What a capacity costs and saves, by hand."""

from __future__ import annotations

import pytest

from minivllm.policies.replay import Tally
from minivllm.policies.sizing import KVShape, capacity_gib, saving

SMOLLM2 = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576}


def test_a_token_costs_keys_and_values_in_every_layer() -> None:
    assert KVShape(30, 3, 64, 2).bytes_per_token == 2 * 30 * 3 * 64 * 2 == 23_040


def test_the_shape_is_read_from_a_models_config() -> None:
    assert KVShape.from_config(SMOLLM2) == KVShape(30, 3, 64)
    assert KVShape.from_config({"text_config": {**SMOLLM2, "head_dim": 128}}, 1.0) == KVShape(30, 3, 128, 1.0)
    without_groups = {name: value for name, value in SMOLLM2.items() if name != "num_key_value_heads"}
    assert KVShape.from_config(without_groups).num_kv_heads == 9


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "num_attention_heads"),
        ({**SMOLLM2, "num_hidden_layers": "30"}, "num_hidden_layers"),
        ({**SMOLLM2, "num_key_value_heads": 2.5}, "num_kv_heads is 2.5"),
        ({**SMOLLM2, "kv_lora_rank": 512}, "compressed keys and values"),
    ],
)
def test_a_config_that_does_not_say_it_is_refused(config: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        KVShape.from_config(config)


def test_a_gib_holds_91_blocks_of_512_tokens_of_smollm2() -> None:
    assert capacity_gib(91, 512, KVShape(30, 3, 64)) == pytest.approx(0.99976, abs=1e-5)


def test_hits_save_prefill_at_the_speed_that_was_measured() -> None:
    tally = Tally(num_requests=2, num_tokens=2000, hit_tokens=500)
    assert saving(tally, 250.0).prefill_s == 8
    assert saving(tally, 250.0).saved_prefill_s == 2


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_is_a_positive_number(speed: float) -> None:
    with pytest.raises(ValueError, match="prefill_tokens_per_s"):
        saving(Tally(), speed)
