from __future__ import annotations

from typing import Any

from labs.kit.pair import cached_tokens, count_facts, seconds


def request(phase: str, cached: int | None, ttft_s: float | None = 1.0, error: str | None = None) -> dict[str, Any]:
    return {"phase": phase, "cached_tokens": cached, "ttft_s": ttft_s, "total_s": 9.0, "error": error}


def record(*requests: dict[str, Any], hits: int | None = 32, shared: int | None = 40) -> dict[str, Any]:
    return {
        "timed": "time to first token", "requests": list(requests), "page_tokens": 16,
        "shared_prefix_tokens": shared,
        "cache_metrics_delta": None if hits is None else {"hits_tokens": hits},
    }  # fmt: skip


def test_seconds_leaves_failed_requests_out_and_takes_the_time_that_was_measured() -> None:
    seen = record(request("cold", 0, 2.0), request("warm", 32, 0.5), request("warm", None, None, "refused"))
    assert seconds(seen, "cold") == [2.0] and seconds(seen, "warm") == [0.5]
    assert seconds({**seen, "timed": "time to the whole answer"}, "cold", "warm") == [9.0, 9.0]


def test_a_missing_count_stays_missing() -> None:
    assert cached_tokens(record(request("warm", None), request("warm", 16)), "warm") == [None, 16]
    assert "warm: this server tells no cached tokens" in count_facts(record(request("warm", None)))


def test_the_facts_of_a_working_cache_hold_no_number_that_a_nonce_could_move() -> None:
    facts = count_facts(record(request("cold", 0), request("warm", 32), request("control", 0)))
    assert facts.splitlines() == [
        "cold: 0 cached tokens",
        "warm: every request restored whole pages of 16 tokens, all of those that the shared prefix fills",
        "control: 0 cached tokens",
        "counters: the server's hits are exactly the sum of what the answers said",
    ]


def test_a_restored_page_too_few_is_not_called_all() -> None:
    facts = count_facts(record(request("warm", 16), shared=40))
    assert "warm: every request restored whole pages of 16 tokens\n" in facts


def test_counters_that_disagree_with_the_answers_are_said_to_differ() -> None:
    assert "hits differ from the sum" in count_facts(record(request("cold", 0), request("warm", 32), hits=48))


def test_a_server_without_counters_or_cached_tokens_is_told_apart() -> None:
    assert "counters: this server has none" in count_facts(record(request("warm", 32), hits=None))
    assert "nothing to compare them with" in count_facts(record(request("warm", None)))
