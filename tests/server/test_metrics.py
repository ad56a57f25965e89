"""The metrics page: its names, its units, and that its counters equal what the answers said (SV-09, MT-03, MT-09)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from minivllm.server.metrics import Histogram
from tests.server.live import CHAT, LiveServer, live_server

COUNTERS = {
    "minivllm:prefix_cache_queries_total",
    "minivllm:prefix_cache_hits_total",
    "minivllm:prompt_tokens_total",
    "minivllm:generation_tokens_total",
    "minivllm:evicted_tokens_total",
}
GAUGES = {
    "minivllm:kv_cache_usage_perc",
    "minivllm:num_requests_running",
    "minivllm:num_requests_waiting",
    "minivllm:cache_config_info",
}
HISTOGRAM = {"minivllm:time_to_first_token_seconds_count", "minivllm:time_to_first_token_seconds_sum"}


def test_the_page_has_these_samples_and_no_others(server: LiveServer) -> None:
    response = server.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    families = list(text_string_to_metric_families(response.text))
    samples = [sample for family in families for sample in family.samples]
    names = {sample.name for sample in samples}
    assert names == COUNTERS | GAUGES | HISTOGRAM | {"minivllm:time_to_first_token_seconds_bucket"}
    assert all(sample.labels["model_name"] == "tiny" for sample in samples)
    config = next(sample.labels for sample in samples if sample.name == "minivllm:cache_config_info")
    assert (config["page_size"], config["num_pages"], config["publication"]) == ("16", "64", "incremental")
    assert (config["kv_dtype"], len(bytes.fromhex(config["identity"]))) == ("float32", 32), "as resolved"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("route", ["/v1/completions", "/v1/chat/completions"])
def test_counters_grow_by_what_usage_says(server: LiveServer, route: str, streamed: bool) -> None:
    chat = "chat" in route
    asked = [
        {"messages": [{"role": "user", "content": words}]} if chat else {"prompt": words}
        for words in ("page " * 40, "page " * 40, "page " * 25 + "key", "other")
    ]
    cached = []
    for body in asked:
        before = server.metrics()
        usage = usage_of(server, route, {**body, "max_tokens": 5, "temperature": 0}, streamed)
        after = server.metrics()
        grown = {name: after[name] - before[name] for name in COUNTERS | HISTOGRAM}
        assert grown["minivllm:prefix_cache_queries_total"] == usage["prompt_tokens"]
        assert grown["minivllm:prompt_tokens_total"] == usage["prompt_tokens"]
        assert grown["minivllm:prefix_cache_hits_total"] == usage["prompt_tokens_details"]["cached_tokens"]
        assert grown["minivllm:generation_tokens_total"] == usage["completion_tokens"]
        assert grown["minivllm:time_to_first_token_seconds_count"] == 1
        assert grown["minivllm:time_to_first_token_seconds_sum"] > 0
        cached.append(usage["prompt_tokens_details"]["cached_tokens"])
    assert cached[0] == 0
    assert cached[1] > cached[2] > 0
    assert cached[3] == 0
    assert all(number % 16 == 0 for number in cached)


def test_a_cache_that_is_off_has_no_queries_and_no_hits() -> None:
    """PC-21: the counters stay 0, and usage says 0 because nothing was reused."""
    with live_server(prefix_cache=False) as server:
        for _ in range(2):
            body = server.complete(prompt=list(range(5, 69)))
            assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        metrics = server.metrics()
        assert metrics["minivllm:prefix_cache_queries_total"] == 0
        assert metrics["minivllm:prefix_cache_hits_total"] == 0
        assert metrics["minivllm:prompt_tokens_total"] == 128
        server.audit()


def test_evicted_tokens_are_counted_in_tokens() -> None:
    with live_server(num_pages=4) as server:
        for first in (5, 105, 205):
            server.complete(prompt=list(range(first, first + 48)), max_tokens=1)
        evicted = server.metrics()["minivllm:evicted_tokens_total"]
        assert evicted > 0
        assert evicted % 16 == 0
        server.audit()


def test_two_chats_with_different_salts_do_not_share_pages(server: LiveServer) -> None:
    def cached_tokens(**salt: str) -> int:
        usage = server.complete(prompt=list(range(5, 60)), max_tokens=1, **salt)["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    assert [cached_tokens(), cached_tokens(cache_salt="a"), cached_tokens(cache_salt="b")] == [0, 0, 0]
    assert [cached_tokens(), cached_tokens(cache_salt="a"), cached_tokens(cache_salt="b")] == [48, 48, 48]


def test_bucket_bounds_include_their_own_value() -> None:
    histogram = Histogram(bounds_s=(0.5, 1.0))
    for seconds in (0.25, 0.5, 0.75, 4.0):
        histogram.observe(seconds)
    buckets, sum_s = histogram.cumulative()
    assert buckets == [("0.5", 2), ("1.0", 3), ("+Inf", 4)]
    assert math.isclose(sum_s, 5.5)


def usage_of(server: LiveServer, route: str, body: dict[str, Any], streamed: bool) -> dict[str, Any]:
    client = server.openai()
    create = client.chat.completions.create if "chat" in route else client.completions.create
    asked = {"model": "tiny", **CHAT, **body} if "chat" in route else {"model": "tiny", **body}
    if not streamed:
        return dict(create(**asked).usage.model_dump())
    chunks = list(create(**asked, stream=True, stream_options={"include_usage": True}))
    assert all(chunk.usage is None for chunk in chunks[:-1])
    return dict(chunks[-1].usage.model_dump())
