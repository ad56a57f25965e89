"""vLLM's metrics page: prefix cache counters in tokens among twins that a loose pattern would add to them.

Captured from 0.32.0: names, types, labels and order, the `_created` samples, the `external_` twins. Documented:
the `mm_` twins, which the captured page of a text model does not have. Left out: what says nothing of the cache.
"""

from __future__ import annotations

from labs.kit.doubles.exposition import family, page, sample
from labs.kit.doubles.tally import Tally


def metrics_page(tally: Tally, model: str, block_size: int, pool_tokens: int, *, has_cache: bool) -> str:
    labels = {"engine": "0", "model_name": model}

    def gauge(name: str, value: float, **more: str) -> str:
        return family(f"vllm:{name}", "gauge", sample(f"vllm:{name}", labels | more, value))

    def counter(name: str, by: str | None = None, /, **values: float) -> str:
        kinds = {f"{name}_total": "counter", f"{name}_created": "gauge"}
        return "\n".join(
            family(
                f"vllm:{full}",
                kind,
                *(
                    sample(
                        f"vllm:{full}",
                        labels | ({by: key} if by else {}),
                        float(value) if kind == "counter" else tally.started_at_s,
                    )
                    for key, value in values.items()
                ),
            )
            for full, kind in kinds.items()
        )

    ttft = "vllm:time_to_first_token_seconds"
    config = {
        "block_size": str(block_size),
        "cache_dtype": "auto",
        "enable_prefix_caching": str(has_cache),
        "engine": "0",
        "num_gpu_blocks": str(pool_tokens // block_size),
    }
    return page(
        family("process_start_time_seconds", "gauge", sample("process_start_time_seconds", {}, tally.started_at_s)),
        gauge("num_requests_running", 0.0),
        gauge("num_requests_waiting", 0.0),
        gauge("kv_cache_usage_perc", 0.0),
        counter("prefix_cache_queries", value=tally.queried_tokens),
        counter("prefix_cache_hits", value=tally.hit_tokens),
        counter("external_prefix_cache_queries", value=0),
        counter("external_prefix_cache_hits", value=0),
        counter("mm_cache_queries", value=0),
        counter("mm_cache_hits", value=0),
        counter("num_preemptions", value=0),
        counter("prompt_tokens", value=tally.prompt_tokens),
        counter(
            "prompt_tokens_by_source",
            "source",
            local_compute=tally.computed_tokens,
            local_cache_hit=tally.hit_tokens,
            external_kv_transfer=0,
        ),
        counter("prompt_tokens_cached", value=tally.hit_tokens),
        counter("generation_tokens", value=tally.generated_tokens),
        family(
            ttft,
            "histogram",
            sample(f"{ttft}_bucket", {"engine": "0", "le": "+Inf", "model_name": model}, float(tally.num_requests)),
            sample(f"{ttft}_count", labels, float(tally.num_requests)),
            sample(f"{ttft}_sum", labels, tally.prompt_s),
        ),
        family("vllm:cache_config_info", "gauge", sample("vllm:cache_config_info", config, 1.0)),
    )
