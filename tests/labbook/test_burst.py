"""Bursts: sent together, counted exactly, told with what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from labbook.book import Labbook
from labbook.burst import measure_burst
from labbook.burst_report import burst_bars, burst_text
from labbook.cli import main as labbook
from labbook.errors import ServerError, UsageError
from labbook.measure_cli import main as measure
from labbook.record import from_line, to_line

CONDITIONS = {
    "lab",
    "experiment",
    "label",
    "engine",
    "engine_version",
    "model",
    "base_url",
    "prefix_source",
    "prefix_chars",
    "prompt_tokens",
    "failed",
    "first_error",
    "recorded_at",
    "environment",
}
KINDS = ["identical", "document", "distinct", "late"]


@pytest.fixture
def book(tmp_path: Path) -> Labbook:
    return Labbook(tmp_path / "labbook.md")


def run(state, count: int = 4, **options) -> dict:
    return measure_burst(state.url, count, **{"prefix_words": 60, "timeout_s": 10.0, **options})


def contents(state) -> list[tuple[str, str, str]]:
    """Nonce, text and question of each chat request, in order of arrival."""
    told = []
    for body in state.bodies:
        system, user = (message["content"] for message in body["messages"])
        nonce, _, text = system.partition("\n\n")
        told.append((nonce, text, user))
    return told


def nulls_without_a_reason(part: dict) -> set[str]:
    return {name for name, value in part.items() if value is None} - part["absent"].keys() - {"first_error", "error"}


def test_a_record_has_its_conditions_and_survives_the_notebook(serve) -> None:
    record = run(serve(), label="mine", engine="e", engine_version="v")
    assert record.keys() >= CONDITIONS
    assert (record["experiment"], record["burst_requests"], list(record["bursts"])) == ("burst", 4, KINDS)
    assert [len(burst["requests"]) for burst in record["bursts"].values()] == [4, 4, 4, 2]
    assert from_line(to_line(record)) == record


def test_the_prompts_of_each_burst_are_what_it_says(serve) -> None:
    state = serve()
    nonces = run(state)["nonces"]
    _, first, *burst, last = contents(state)
    identical, document, distinct, late = burst[:4], burst[4:8], burst[8:12], burst[12:]
    assert len(set(identical)) == 1 and {nonce for nonce, _, _ in identical} == {nonces["identical"]}
    assert {nonce for nonce, _, _ in document} == {nonces["document"]}
    assert len({question for _, _, question in document}) == 4
    assert {nonce for nonce, _, _ in distinct} == set(nonces["distinct"]) and len(set(distinct)) == 4
    assert len(late) == 2 and len(set(late)) == 1
    assert [first[0], last[0]] == nonces["cold"]
    assert len({text for _, text, _ in [first, *burst, last]}) == 1


def test_no_nonce_is_used_by_two_bursts_however_large(serve) -> None:
    state = serve()
    nonces = run(state, 30)["nonces"]
    flat = [*nonces["cold"], nonces["identical"], nonces["document"], *nonces["distinct"], nonces["late"]]
    assert len({nonce[:2] for nonce in flat}) == len(flat) == 35


def test_requests_of_a_burst_are_sent_together_and_the_late_one_after_the_first_token(serve) -> None:
    record = run(serve(token_s=0.003))
    for kind in ("identical", "document", "distinct"):
        assert max(request["sent_after_s"] for request in record["bursts"][kind]["requests"]) < 0.1
    leader, follower = record["bursts"]["late"]["requests"]
    assert leader["sent_after_s"] == 0
    assert follower["sent_after_s"] >= leader["ttft_s"] > 0.1


def test_tokens_are_counted_by_usage_and_by_counters_against_one_cold_request(serve) -> None:
    record = run(serve())
    prompt = record["prompt_tokens"]
    distinct, late = record["bursts"]["distinct"], record["bursts"]["late"]
    assert record["cold"]["computed_tokens"] == record["cold"]["computed_tokens_by_counters"] == prompt
    assert distinct["prompt_tokens"] == distinct["computed_tokens"] == 4 * prompt
    assert distinct["computed_tokens_by_counters"] == 4 * prompt and distinct["computed_over_cold"] == 4
    restored = (prompt - 1) // 16 * 16
    assert late["computed_tokens"] == late["computed_tokens_by_counters"] == 2 * prompt - restored


def test_times_are_mean_and_slowest_and_over_cold(serve) -> None:
    record = run(serve(token_s=0.001, cache=False))
    for burst in record["bursts"].values():
        firsts = [request["ttft_s"] for request in burst["requests"]]
        ends = [request["total_s"] for request in burst["requests"]]
        assert burst["first_token_mean_s"] == pytest.approx(sum(firsts) / len(firsts), abs=2e-6)
        assert (burst["first_token_slowest_s"], burst["completion_slowest_s"]) == (max(firsts), max(ends))
        over = burst["first_token_mean_s"] / record["cold"]["first_token_s"]
        assert burst["first_token_mean_over_cold"] == pytest.approx(over, abs=1e-3)


def test_what_a_server_does_not_tell_is_null_with_a_reason(serve) -> None:
    record = run(serve(usage=False, metrics=False))
    parts = [record, record["cold"], *record["bursts"].values()]
    assert [nulls_without_a_reason(part) for part in parts] == [set()] * len(parts)
    for burst in record["bursts"].values():
        assert burst["computed_tokens"] is burst["computed_tokens_by_counters"] is None
        assert burst["absent"]["computed_tokens"] == "the server sent no usage object"
    assert "no counters" in burst_text(record)


def test_without_streaming_there_is_no_first_token_and_nobody_is_late(serve) -> None:
    record = run(serve(streams=False))
    assert record["cold"]["first_token_s"] is record["bursts"]["identical"]["first_token_mean_s"] is None
    assert record["bursts"]["identical"]["completion_mean_s"] > 0
    late = record["bursts"]["late"]
    assert len(late["requests"]) == 1 and "no moment to be late for" in late["absent"]["requests"]
    assert [nulls_without_a_reason(part) for part in record["bursts"].values()] == [set()] * 4


def test_a_field_that_is_refused_is_learnt_before_the_bursts(serve) -> None:
    state = serve(refused_fields=("seed",))
    record = run(state)
    assert record["dropped_fields"] == ["seed"] and record["failed"] == 0
    assert len(state.headers) == 1 + 17  # one refusal, then a request for each that was planned


def test_a_request_that_fails_is_counted_and_the_others_stand(serve) -> None:
    record = run(serve(fails_at_request=(4,)))
    assert record["failed"] == 1 and "out of memory" in record["first_error"]
    identical = record["bursts"]["identical"]
    assert identical["failed"] == 1 and identical["completion_mean_s"] is not None
    assert identical["computed_tokens"] is None and identical["absent"]["computed_tokens"] == "a request failed"


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ((1,), "the warm-up request failed"),
        ((2,), "the cold request failed"),
        (tuple(range(3, 16)), "not one request of the bursts"),
    ],
)
def test_without_yardstick_or_burst_there_is_no_record(serve, failing: tuple[int, ...], said: str) -> None:
    with pytest.raises(ServerError, match=said):
        run(serve(fails_at_request=failing))


def test_a_small_measurement_asks_for_few_new_tokens(serve) -> None:
    state = serve()
    assert run(state, 2, new_tokens=3)["new_tokens"] == 3
    assert {body["max_tokens"] for body in state.bodies} == {3}
    with pytest.raises(UsageError, match="new tokens is 0"):
        run(state, 2, new_tokens=0)


@pytest.mark.parametrize("count", [-1, 0, 1, 257])
def test_a_burst_needs_company(serve, count: int) -> None:
    with pytest.raises(UsageError, match="give 2 to 256"):
        run(serve(), count)


def test_a_yardstick_that_was_warm_and_traffic_of_others_are_warned_of(serve) -> None:
    warm = run(serve(preloaded=True))["warnings"]
    assert any("the cold request was warm" in warning for warning in warm)
    busy = run(serve(foreign_tokens=60))["warnings"]
    assert any("other traffic" in warning for warning in busy)


def test_the_command_appends_one_record_draws_it_and_shows_it_again(serve, book, tmp_path, capsys) -> None:
    figure = tmp_path / "burst.png"
    told = ["--base-url", serve().url, "--prefix-words", "60", "--burst", "3", "--labbook", str(book.path)]
    assert measure([*told, "--figure", str(figure)]) == 0
    out = capsys.readouterr().out
    (record,) = book.records(strict=True)
    assert record["experiment"] == "burst" and "3 identical, at once" in out and "2 identical, one late" in out
    sentence = figure.with_suffix(".txt").read_text(encoding="utf-8").splitlines()[0]
    assert sentence == burst_bars(record).sentence and sentence in out
    assert labbook(["show", "--labbook", str(book.path)]) == 0
    assert capsys.readouterr().out.strip() == burst_text(record).strip()
    assert labbook(["plot", "--labbook", str(book.path), "--out", str(figure)]) == 0
    capsys.readouterr()
    assert measure([*told, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == book.records(strict=True)[-1]


@pytest.mark.parametrize("more", [["--burst", "1"], ["--burst", "0"], ["--burst", "2", "--expect", "reused"]])
def test_wrong_usage_exits_2(serve, book, capsys, more: list[str]) -> None:
    assert measure(["--base-url", serve().url, "--labbook", str(book.path), *more]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1 and not book.path.exists()


def test_figures_differ_in_hatch_and_say_what_one_cold_request_takes(serve) -> None:
    record = run(serve(token_s=0.0005))
    (axes,) = burst_bars(record).figure.axes
    assert len({bar.get_hatch() for bar in axes.patches}) == 4 and len(axes.patches) == 16
    assert axes.lines[0].get_ydata()[0] == record["cold"]["first_token_s"]
    with pytest.raises(UsageError, match="holds no burst"):
        burst_bars({"experiment": "cold_warm"})


@pytest.fixture
def tiny_server() -> Iterator[str]:
    pytest.importorskip("mlx.core")
    from tests.server.live import live_server

    with live_server(num_pages=800) as server:
        yield f"{server.url}/v1"


def test_the_mini_engine_computes_each_burst_about_once_and_distinct_prompts_in_full(tiny_server: str) -> None:
    record = measure_burst(tiny_server, 4, prefix_words=120, timeout_s=60.0)
    assert (record["engine"], record["failed"], record["page_tokens"]) == ("minivllm", 0, 16)
    one = record["prompt_tokens"]
    prompts = {
        kind: [(request["prompt_tokens"], request["cached_tokens"]) for request in burst["requests"]]
        for kind, burst in record["bursts"].items()
    }
    for burst in record["bursts"].values():
        assert burst["computed_tokens"] == burst["computed_tokens_by_counters"]
    for kind in ("identical", "late"):
        least = sum(prompt - (prompt - 1) // 16 * 16 for prompt, _ in prompts[kind][1:])
        assert record["bursts"][kind]["computed_tokens"] <= prompts[kind][0][0] + least
    assert record["bursts"]["document"]["computed_tokens"] < 2 * one
    assert record["bursts"]["distinct"]["computed_tokens"] > 3.7 * one
