"""The `/metrics` page: Prometheus text from one snapshot of the engine's counters.

The families are built at each scrape, so there are no `_created` samples for a loose pattern to add (MT-03).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from dataclasses import fields

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from minivllm.server.engine_facts import EngineFacts
from minivllm.server.engine_thread import EngineThread

TTFT_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "prefix_cache_queries": ("Prompt tokens looked up in the prefix index, in tokens.", ("queried_tokens",)),
    "prefix_cache_hits": ("Prompt tokens restored from the prefix index, in tokens.", ("restored_tokens",)),
    "prompt_tokens": (
        "Prompt tokens processed, restored or computed, in tokens.",
        ("restored_tokens", "computed_prefill_tokens"),
    ),
    "generation_tokens": ("Tokens generated.", ("generated_tokens",)),
    "evicted_tokens": ("Tokens whose cached pages were evicted for room or expired.", ("evicted_tokens",)),
}
"""Metric name without prefix and `_total`, its help, and the entries of `EngineThread.stats` in it."""

GAUGES: Mapping[str, tuple[str, str]] = {
    "num_requests_running": ("Requests being computed now.", "requests_running"),
    "num_requests_waiting": ("Requests waiting for admission now.", "requests_waiting"),
}


class Histogram:
    """Seconds, counted by upper bound. Only the event loop touches it."""

    def __init__(self, bounds_s: tuple[float, ...] = TTFT_BOUNDS_S) -> None:
        self._bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self._sum_s = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect.bisect_left(self._bounds_s, seconds)] += 1
        self._sum_s += seconds

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """Prometheus' buckets, each with all that are below its bound, and the sum in seconds."""
        names = [*(str(bound) for bound in self._bounds_s), "+Inf"]
        totals = [float(sum(self._counts[: at + 1])) for at in range(len(names))]
        return list(zip(names, totals, strict=True)), self._sum_s


class Page(Collector):
    """One scrape. While the model loads `facts` is None: then only the histogram is there."""

    def __init__(self, model_name: str, stats: Mapping[str, int], facts: EngineFacts | None, ttft: Histogram) -> None:
        self._labels = {"model_name": model_name}
        self._stats = stats
        self._facts = facts
        self._ttft = ttft

    def text(self) -> bytes:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        yield self._histogram()
        if self._facts is None:
            return
        for name, (help_text, counters) in COUNTERS.items():
            counter = CounterMetricFamily(f"minivllm:{name}", help_text, labels=list(self._labels))
            counter.add_metric(list(self._labels.values()), sum(self._stats[key] for key in counters))
            yield counter
        for name, (help_text, gauge) in GAUGES.items():
            yield self._gauge(name, help_text, self._stats[gauge])
        used = (self._stats["pages_active"] - self._stats["pages_partial"]) / self._stats["pages_total"]
        yield self._gauge(
            "kv_cache_usage_perc", "Pages in use by running requests, as a fraction: 1 is all of them.", used
        )
        yield self._config(self._facts)

    def _gauge(self, name: str, help_text: str, value: float) -> Metric:
        gauge = GaugeMetricFamily(f"minivllm:{name}", help_text, labels=list(self._labels))
        gauge.add_metric(list(self._labels.values()), value)
        return gauge

    def _histogram(self) -> Metric:
        histogram = HistogramMetricFamily(
            "minivllm:time_to_first_token_seconds",
            "From arrival to the first token, in seconds.",
            labels=list(self._labels),
        )
        buckets, sum_s = self._ttft.cumulative()
        histogram.add_metric(list(self._labels.values()), buckets, sum_s)
        return histogram

    def _config(self, facts: EngineFacts) -> Metric:
        settings = {field.name: getattr(facts.config, field.name) for field in fields(facts.config)}
        del settings["slot_save_path"]  # of no use to a scraper, and nobody else's business
        settings |= {
            "num_pages": facts.num_pages,
            "kv_cache_bytes": facts.kv_cache_bytes,
            "max_model_len": facts.max_model_len,
            "kv_dtype": facts.kv_dtype,
            "identity": facts.identity,
        }
        info = InfoMetricFamily(
            "minivllm:cache_config", "The engine's settings, sizes resolved.", labels=list(self._labels)
        )
        info.add_metric(list(self._labels.values()), {name: str(value) for name, value in settings.items()})
        return info


def metrics_routes(engine: EngineThread, model_name: str, ttft: Histogram) -> APIRouter:
    router = APIRouter()

    @router.get("/metrics")
    async def metrics() -> Response:
        page = Page(model_name, engine.stats, engine.facts, ttft)
        return Response(page.text(), media_type=CONTENT_TYPE_LATEST)

    return router
