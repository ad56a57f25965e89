"""Example records of notebook 11, and a stale nonce: what the counts of the doubles say, whatever the machine."""

from __future__ import annotations

from typing import Any

import pytest

from labbook.client import Client
from labbook.measure import measure
from labbook.prompts import conversation, fresh_nonces, question, synthetic_text
from labs.kit.doubles import double
from labs.kit.evidence import counter_gain, evidence_form
from labs.kit.example_servers import ALIKE, FLAGS, WHAT_THEY_ARE, measured_double
from labs.kit.pair import cached_tokens
from labs.kit.stale_nonce import stale_nonce

PLAN: dict[str, Any] = {"prefix_words": 40, "questions": 1, "repeats": 1, "answer_tokens": 1}
NO_DELAY = {"computed_token_delay_s": 0.0}


@pytest.mark.parametrize("engine", FLAGS)
def test_each_double_reuses_its_prefix_and_says_what_it_is(engine: str) -> None:
    record = measured_double(engine, "example", PLAN, faults=NO_DELAY)
    assert record["signals"]["cached_tokens"]["supports"] == "reused"
    assert record["signals"]["counters"]["supports"] == (None if engine == "mlx-lm" else "reused")
    assert record["engine"] == f"{engine} (double)" and f"{engine} did not run" in record["origin"]
    assert f"origin:                    a double of {engine}" in evidence_form(record, origin=record["origin"])


def test_three_servers_that_reuse_nothing_differ_in_their_counts() -> None:
    seen = {}
    for name, faults in ALIKE.items():
        record = measured_double("vllm", name, PLAN, faults={**faults, **NO_DELAY})
        hits, queries = counter_gain(record)
        assert cached_tokens(record, "warm") == [0]
        seen[name] = (bool(hits), bool(queries))
    assert seen == {"A": (False, True), "B": (True, True), "C": (False, False)}
    assert seen.keys() == WHAT_THEY_ARE.keys()


def test_a_cold_prompt_that_was_asked_before_is_called_contaminated() -> None:
    text, nonce = synthetic_text(PLAN["prefix_words"], 0), "xylophonequartet"
    with double("vllm", flags=FLAGS["vllm"]) as server:
        client = Client(server.base_url)
        client.chat("tiny", conversation(nonce, text, question(0)), 1)
        client.close()
        with stale_nonce(nonce):
            stale = measure(server.base_url, **PLAN)
        assert nonce not in fresh_nonces(26)
        fresh = measure(server.base_url, **PLAN)
    assert stale["nonce"] == nonce and stale["control_nonce"][0] != nonce[0]
    assert stale["verdict"] == "contaminated" and "the cold request was warm" in stale["verdict_reason"]
    assert fresh["verdict"] != "contaminated"
