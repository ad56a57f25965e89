"""labbook measures the doubles: the right verdict, or the right refusal, from counts alone.

The clock is left out of these verdicts: `tiny` is too fast for it, and a test must not depend on it.
"""

from __future__ import annotations

from typing import Any

import pytest

from labbook.errors import ServerError
from labbook.measure import measure
from labbook.signals import Signal
from labbook.verdict import Verdict, decide
from labs.kit.doubles import double
from labs.kit.doubles.presets import faults_of
from tests.labs.doubles_probe import FLAGS

WORDS = 60  # of tiny's: more than 200 tokens
OFF = {
    "vllm": ["--no-enable-prefix-caching"],
    "sglang": ["--disable-radix-cache"],
    "llama-server": ["--no-cache-prompt"],
    "mlx-lm": ["--prompt-cache-size", "0"],
}


def measured(
    name: str, *faults: str, flags: list[str] | None = None, questions: int = 2, **options: Any
) -> dict[str, Any]:
    with double(name, faults=faults_of(faults), flags=FLAGS[name] + (flags or [])) as server:
        return measure(server.base_url, prefix_words=WORDS, questions=questions, **options)


def by_counts(record: dict[str, Any]) -> Verdict:
    return decide({name: Signal(**told) for name, told in record["signals"].items() if name != "clock"})


def supports(record: dict[str, Any]) -> tuple[str | None, str | None]:
    return record["signals"]["cached_tokens"]["supports"], record["signals"]["counters"]["supports"]


@pytest.mark.parametrize("name", FLAGS)
def test_a_healthy_double_is_found_to_reuse(name: str) -> None:
    record = measured(name)
    assert by_counts(record).word == "reused"
    assert supports(record) == ("reused", None if name == "mlx-lm" else "reused")
    page = 16 if name == "vllm" else 1
    assert all(request["cached_tokens"] % page == 0 for request in record["requests"] if request["cached_tokens"])


@pytest.mark.parametrize("name", FLAGS)
def test_a_double_whose_own_flag_turns_the_cache_off_is_not(name: str) -> None:
    record = measured(name, flags=OFF[name])
    expected = {
        "vllm": ("not_reused", "not_reused"),
        "sglang": (None, "not_reused"),  # it tells details of what was reused, and nothing of what was not
        "llama-server": ("not_reused", "not_reused"),
        "mlx-lm": ("not_reused", None),
    }
    assert by_counts(record).word == "not_reused"
    assert supports(record) == expected[name]


@pytest.mark.parametrize(
    ("fault", "cached_tokens", "counters"),
    [
        ("salted", "not_reused", "not_reused"),
        ("clock-injected", "not_reused", "not_reused"),
        ("one-slot", "reused", "reused"),  # a pair is one conversation; two in turns would show it
        ("counters-lying", "not_reused", "reused"),
        ("counters-zero", "reused", "not_reused"),
        ("usage-lying", "reused", "not_reused"),
        ("usage-zero", "not_reused", "reused"),
        ("no-details", None, "reused"),
        ("no-metrics", "reused", None),
    ],
)
def test_a_fault_shows_in_the_signal_it_touches(fault: str, cached_tokens: str | None, counters: str | None) -> None:
    record = measured("llama-server", fault)
    assert supports(record) == (cached_tokens, counters)
    if {cached_tokens, counters} == {"reused", "not_reused"}:
        assert by_counts(record).word == "inconclusive" and "disagree" in by_counts(record).reason


def test_missing_details_are_absent_with_the_flag_that_asks_for_them() -> None:
    with double("vllm") as server:
        record = measure(server.base_url, prefix_words=WORDS, questions=1)
    told = record["signals"]["cached_tokens"]
    assert told["value"] is None and "--enable-prompt-tokens-details" in told["why"]


@pytest.mark.parametrize(("fault", "words"), [("foreign", "other traffic"), ("restart=3", "restarted")])
def test_what_disturbs_a_measurement_is_told(fault: str, words: str) -> None:
    record = measured("vllm", fault)
    assert record["verdict"] == "contaminated" and words in record["verdict_reason"]


@pytest.mark.parametrize(
    ("name", "fault", "dropped"),
    [
        ("vllm", "refuse", ["max_tokens"]),
        ("mlx-lm", "refuse=stream_options,seed", ["seed", "stream_options"]),
        ("llama-server", "refuse=system", ["system"]),
        ("vllm", "refuse-silently=temperature", ["temperature"]),
    ],
)
def test_a_field_that_is_refused_is_left_out_and_the_rest_measured(name: str, fault: str, dropped: list[str]) -> None:
    record = measured(name, fault, questions=1)
    assert record["dropped_fields"] == dropped and record["failed"] == 0
    assert "stream_options" in dropped or supports(record)[0] == "reused"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("vllm", "reasoning"),
        ("mlx-lm", "reasoning"),
        ("sglang", "reasoning"),
        ("llama-server", "keep-alives=3"),
        ("vllm", "split"),
        ("mlx-lm", "split=3"),
        ("vllm", "crlf"),
    ],
)
def test_no_way_of_sending_hides_a_token(name: str, fault: str) -> None:
    record = measured(name, fault, questions=1)
    assert record["timed"] == "time to first token" and supports(record)[0] == "reused"
    channel = "reasoning_content" if name == "sglang" else "reasoning"
    field = channel if fault == "reasoning" else "content"
    assert {request["first_field"] for request in record["requests"]} == {field}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("html-errors", "an HTML page titled '502 Bad Gateway'"),
        ("unauthorized", "401.*--api-key-env"),
        ("rate-limited", "429: Rate limit reached"),
        ("loading", "503: Loading model"),
        ("empty", "an empty answer"),
        ("hang", "no complete answer"),
        ("hang-mid-stream", "no complete answer"),
    ],
)
def test_a_server_that_cannot_be_measured_is_refused_in_words(fault: str, words: str) -> None:
    with pytest.raises(ServerError, match=words):
        measured("vllm", fault, timeout_s=0.5)
