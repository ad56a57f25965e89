"""How many pages a pool has, in which precision, and what they cost in bytes."""

from __future__ import annotations

import pytest

from minivllm.cache import pool_layout as pool_layout_module
from minivllm.cache.kv_format import KVFormat, KVFormatError
from minivllm.cache.pool_layout import PoolLayout, kv_format_of, pool_layout
from minivllm.config import GIB, ConfigError, EngineConfig
from minivllm.models.spec import ModelSpec


def shape(num_layers: int = 1, num_kv_heads: int = 1, head_dim: int = 32) -> ModelSpec:
    return ModelSpec(
        family="llama",
        num_layers=num_layers,
        hidden_size=64,
        intermediate_size=64,
        num_heads=num_kv_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        vocab_size=100,
        rms_norm_eps=1e-5,
        rope_theta=10_000.0,
        max_position_embeddings=1_000,
    )


def layout(spec: ModelSpec | None = None, **settings: object) -> PoolLayout:
    config = EngineConfig(**{"page_size": 4, **settings})  # type: ignore[arg-type]
    return pool_layout(config, spec or shape(head_dim=2), kv_format_of(config, "float32"))


@pytest.mark.parametrize(("budget_bytes", "pages"), [(64, 1), (65, 1), (127, 1), (128, 2), (6400, 100)])
def test_a_budget_in_bytes_is_rounded_down_to_whole_pages(budget_bytes: int, pages: int) -> None:
    assert layout(kv_cache_bytes=budget_bytes).num_pages == pages


@pytest.mark.parametrize("budget_tokens", [1, 2, 3])
def test_a_budget_below_one_page_is_an_error_and_never_a_silent_off(budget_tokens: int) -> None:
    with pytest.raises(ConfigError, match=f"kv_cache_bytes={budget_tokens * 16} is below one page of 64 bytes"):
        layout(kv_cache_bytes=budget_tokens * 16)


def test_a_number_of_pages_is_taken_as_it_is() -> None:
    assert layout(num_pages=3).num_pages == 3


def test_without_a_size_the_pool_takes_the_default_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_layout_module, "default_kv_cache_bytes", lambda: 6400)
    assert layout().num_pages == 100


def test_a_pool_larger_than_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_layout_module, "physical_memory_bytes", lambda: GIB)
    with pytest.raises(ConfigError, match=r"need 6\.0 GiB, this machine has 1\.0 GiB"):
        layout(num_pages=100_000_000)


@pytest.mark.parametrize(
    ("bits", "group_size", "dtype", "bytes_per_head"),
    [
        (None, None, "float32", 64 * 4),
        (None, None, "float16", 64 * 2),
        (8, 64, "float32", 64 + 2 * 4),
        (8, 64, "float16", 64 + 2 * 2),
        (8, 32, "float16", 64 + 2 * 2 * 2),
        (4, 64, "bfloat16", 32 + 2 * 2),
        (4, 32, "float32", 32 + 2 * 2 * 4),
    ],
)
def test_bytes_of_a_token_count_elements_scales_and_biases(
    bits: int | None, group_size: int | None, dtype: str, bytes_per_head: int
) -> None:
    kv_format = KVFormat(dtype, bits, group_size)
    assert kv_format.bytes_per_token(num_layers=3, num_kv_heads=2, head_dim=64) == 2 * 3 * 2 * bytes_per_head


def test_the_model_of_the_issue_takes_147456_bytes_per_token_at_16_bits() -> None:
    per_token = KVFormat("float16").bytes_per_token(num_layers=36, num_kv_heads=8, head_dim=128)
    assert per_token == 147_456
    assert per_token * 32_768 == 4.5 * GIB


@pytest.mark.parametrize(
    ("head_dim", "fitting"),
    [(32, (32,)), (48, ()), (64, (32, 64)), (80, ()), (96, (32,)), (128, (32, 64, 128))],
)
def test_a_head_that_groups_do_not_divide_is_refused_with_the_sizes_that_fit(
    head_dim: int, fitting: tuple[int, ...]
) -> None:
    for group_size in (32, 64, 128):
        kv_format = KVFormat("float32", 8, group_size)
        if group_size in fitting:
            kv_format.check_head(head_dim)
            continue
        offer = f"give kv_group_size {' or '.join(map(str, fitting))}" if fitting else "no group size fits"
        with pytest.raises(KVFormatError, match=f"does not divide the head size {head_dim}: {offer}"):
            kv_format.check_head(head_dim)


def test_half_the_bits_give_about_twice_the_pages_for_the_same_bytes() -> None:
    spec = shape(head_dim=64)
    pages = {bits: layout(spec, kv_cache_bytes=10**6, kv_bits=bits).num_pages for bits in (None, 8, 4)}
    assert pages == {None: 10**6 // (4 * 2 * 256), 8: 10**6 // (4 * 2 * 72), 4: 10**6 // (4 * 2 * 40)}


def test_heads_of_twice_as_many_sequences_as_may_run_stay_in_full_precision() -> None:
    spec = shape(head_dim=64)
    made = layout(spec, num_pages=100, kv_bits=8, quantized_kv_start=5, max_active_requests=3)
    assert (made.kv_format.head_pages, made.num_head_pages, made.num_body_pages) == (2, 12, 88)
    assert made.num_bytes == 4 * 2 * (12 * 256 + 88 * 72)
    assert made.longest_sequence_tokens == 4 * (2 + 88)


def test_heads_take_at_most_half_of_a_pool() -> None:
    assert layout(shape(head_dim=64), num_pages=20, kv_bits=8, quantized_kv_start=16).num_head_pages == 10


def test_a_budget_pays_for_heads_and_body() -> None:
    made = layout(shape(head_dim=64), kv_cache_bytes=100_000, kv_bits=4, quantized_kv_start=4, max_active_requests=2)
    assert made.num_head_pages == 4
    assert made.num_bytes <= 100_000 < made.num_bytes + made.bytes_per_page


def test_a_head_longer_than_half_of_the_pool_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"quantized_kv_start=256 keeps 64 pages .* half of the pool holds 10"):
        layout(shape(head_dim=64), num_pages=20, kv_bits=8, quantized_kv_start=256)


def test_a_page_table_has_its_heads_in_front() -> None:
    made = layout(shape(head_dim=64), num_pages=10, kv_bits=8, quantized_kv_start=8, max_active_requests=2)
    assert (made.num_head_pages, made.kv_format.head_pages) == (5, 2)
    assert made.one_sequence(range(10)) == [0, 1, 5, 6, 7, 8, 9]
    assert made.one_sequence([4, 9]) == [4]
