"""The identity of a page: everything that changes its bytes, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from minivllm.cache.identity import CacheIdentity
from minivllm.config import EngineConfig

BASE = CacheIdentity("weights", "tokenizer", 2, 1, 8, "float32", None, None, 0, 16, 10_000.0, False)

OTHER: dict[str, Any] = {
    "weights_id": "other weights",
    "tokenizer_digest": "other tokenizer",
    "num_layers": 3,
    "num_kv_heads": 2,
    "head_dim": 16,
    "kv_dtype": "float16",
    "kv_bits": 8,
    "kv_group_size": 32,
    "kv_head_pages": 4,
    "page_size": 32,
    "rope_theta": 500_000.0,
    "rope_traditional": True,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "adapter": "lora",
}


def test_every_field_is_varied_here() -> None:
    assert set(OTHER) == {field.name for field in fields(CacheIdentity)}


@pytest.mark.parametrize("name", OTHER)
def test_whatever_changes_the_bytes_of_a_page_changes_the_digest(name: str) -> None:
    assert replace(BASE, **{name: OTHER[name]}).digest() != BASE.digest()


def test_equal_settings_have_equal_digests_in_whatever_order_a_mapping_lists_them() -> None:
    one = replace(BASE, rope_scaling={"factor": 2.0, "rope_type": "linear"})
    other = replace(BASE, rope_scaling={"rope_type": "linear", "factor": 2.0})
    assert one.digest() == other.digest()
    assert len(one.digest()) == 32


def test_neighbouring_fields_cannot_be_shifted_into_each_other() -> None:
    one, other = replace(BASE, num_layers=21, num_kv_heads=1), replace(BASE, num_layers=2, num_kv_heads=11)
    assert one.digest() != other.digest()


def test_no_setting_of_the_instance_leaks_into_the_identity() -> None:
    instance_only = {"num_pages", "kv_cache_bytes", "max_model_len", "max_batched_tokens", "max_active_requests"}
    assert instance_only <= {field.name for field in fields(EngineConfig)}
    assert not instance_only & {field.name for field in fields(CacheIdentity)}
