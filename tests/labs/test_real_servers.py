"""The instrument against real servers with a small model, cache on and off. Counts decide: times are not asserted."""

from __future__ import annotations

import pytest

from labbook.measure import measure
from labbook.record import Record
from labs.kit.mlx_serving import running_mlx_server
from labs.kit.serving import running_server

COUNTED = ("cached_tokens", "counters")


def supports(record: Record) -> list[str | None]:
    return [record["signals"][name]["supports"] for name in COUNTED]


def cached(record: Record, phase: str) -> list[int]:
    return [request["cached_tokens"] for request in record["requests"] if request["phase"] == phase]


def run(url: str, model: str | None, experiment: str = "pair", **options) -> Record:
    return measure(url, model=model, experiment=experiment, **{"prefix_words": 40, "repeats": 2, **options})


@pytest.fixture(scope="module")
def minivllm_on():
    with running_server("tiny", flags=["--num-pages", "64"], is_quiet=True) as server:
        yield server


def test_minivllm_with_its_cache_on_restores_whole_pages_of_the_prefix(minivllm_on) -> None:
    record = run(minivllm_on.base_url, minivllm_on.model)
    assert supports(record) == ["reused", "reused"]
    assert (record["identity"], record["engine"]) != (None, None)
    shared = record["shared_prefix_tokens"] // 16 * 16
    assert cached(record, "cold") == cached(record, "control") == [0, 0]
    assert cached(record, "warm") == [shared] * 6


def test_minivllm_reuses_nothing_behind_a_changed_letter(minivllm_on) -> None:
    record = run(minivllm_on.base_url, minivllm_on.model, "control")
    assert supports(record) == ["not_reused", "not_reused"]
    assert record["verdict"] == "not_reused"


def test_minivllm_loses_a_prefix_when_competitors_fill_its_pool(minivllm_on) -> None:
    """64 pages hold 1,024 tokens: eight prompts of some 160 tokens push the first one out, one does not."""
    lost = run(minivllm_on.base_url, minivllm_on.model, "eviction", competitors=8, repeats=1)
    kept = run(minivllm_on.base_url, minivllm_on.model, "eviction", competitors=1, repeats=1)
    assert (supports(lost), supports(kept)) == (["not_reused"] * 2, ["reused"] * 2)
    assert cached(lost, "warm")[0] > 0 == cached(lost, "again")[0]
    assert cached(kept, "again") == cached(kept, "warm")


def test_minivllm_with_its_cache_off_restores_nothing() -> None:
    with running_server("tiny", flags=["--no-prefix-cache"], is_quiet=True) as server:
        record = run(server.base_url, server.model)
    assert supports(record) == ["not_reused", "not_reused"]
    assert cached(record, "warm") == [0] * 6
    assert record["cache_metrics_delta"]["queries_tokens"] == 0


@pytest.mark.parametrize(("flags", "supported"), [((), "reused"), (("--prompt-cache-size", "0"), "not_reused")])
def test_mlx_lm_server_tells_its_reuse_in_the_answers_and_has_no_counters(flags, supported: str) -> None:
    with running_mlx_server("tiny", flags) as server:
        record = run(server.base_url, server.model, repeats=1)
    assert supports(record) == [supported, None]
    assert record["signals"]["counters"]["value"] is None and "404" in record["signals"]["counters"]["why"]
    assert all(request["ttft_s"] is not None for request in record["requests"])
    assert str(record["system_fingerprint"]).startswith("0.")
