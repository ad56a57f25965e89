"""A cold and warm pair against a server that behaves as asked: records and verdicts (MS-01 to MS-14, MT-10, PC-09)."""

import json

import pytest

from labbook.errors import ServerError, UsageError
from labbook.measure import measure
from labbook.record import from_line, to_line
from labbook.run import Plan

NAMED_IN_THE_DESIGN = {
    "lab",
    "label",
    "engine",
    "engine_version",
    "model",
    "base_url",
    "prefix_source",
    "prefix_chars",
    "prompt_tokens",
    "cold_s",
    "warm_s",
    "warm_over_cold",
    "server_timings_sample",
    "cache_metrics_delta",
    "failed",
    "first_error",
    "recorded_at",
    "verdict",
    "verdict_reason",
    "signals",
}
SLOW = 0.0004  # seconds a token: a cold prompt of 600 words takes a quarter of a second


def run(state, **options) -> dict:
    options = {"prefix_words": 200, "timeout_s": 10.0, **options}
    return measure(state.url, **options)


def supports(record: dict) -> dict[str, str | None]:
    return {name: signal["supports"] for name, signal in record["signals"].items()}


def test_a_cache_that_is_on_is_reused_by_all_three_signals(serve) -> None:
    record = run(serve(token_s=SLOW), prefix_words=600)
    assert record["verdict"] == "reused"
    assert supports(record) == {"clock": "reused", "cached_tokens": "reused", "counters": "reused"}
    assert record["signals"]["cached_tokens"]["value"] == 592
    assert record["cache_metrics_delta"]["phases"]["cold"] == {"hits_tokens": 0, "queries_tokens": 616}
    assert record["cache_metrics_delta"]["hits_tokens"] == 3 * 592


def test_a_cache_that_is_off_is_not_reused_by_all_three_signals(serve) -> None:
    record = run(serve(token_s=SLOW, cache=False), prefix_words=600)
    assert record["verdict"] == "not_reused"
    assert supports(record) == dict.fromkeys(("clock", "cached_tokens", "counters"), "not_reused")


def test_the_clock_alone_tells_both(serve) -> None:
    alone = {"token_s": SLOW, "usage": False, "metrics": False}
    on, off = run(serve(**alone), prefix_words=300), run(serve(**alone, cache=False), prefix_words=300, questions=1)
    assert (on["verdict"], off["verdict"]) == ("reused", "not_reused")
    assert min(on["groups"], off["groups"]) >= 3
    assert "clock alone can tell" in on["verdict_reason"]


def test_a_record_has_every_field_of_the_design_and_survives_the_notebook(serve) -> None:
    record = run(serve(), label="ümläut \u2028", engine="mine", engine_version="1", seed=3)
    assert record.keys() >= NAMED_IN_THE_DESIGN
    assert record["warm_s"].keys() == {"count", "p50", "mean", "min", "max"}
    assert record["signals"].keys() == {"clock", "cached_tokens", "counters"}
    for signal in record["signals"].values():
        assert signal["why"] and {"value", "supports"} <= signal.keys()
    assert from_line(to_line(record)) == record
    assert (record["engine"], record["engine_version"], record["seed"]) == ("mine", "1", 3)
    assert record["base_url"].endswith("/v1")


def test_every_null_field_has_a_reason(serve) -> None:
    record = run(serve(usage=False, metrics=False))
    nulls = {name for name, value in record.items() if value is None} - {"first_error"}
    assert nulls >= {"prompt_tokens", "cache_metrics_delta", "engine", "server_timings_sample"}
    assert nulls == record["absent"].keys()
    for name in ("cached_tokens", "counters"):
        assert record["signals"][name]["value"] is None
        assert record["signals"][name]["why"]


def test_the_only_model_of_a_server_needs_no_name_and_several_do(serve) -> None:
    assert run(serve(models=("the-one",)))["model"] == "the-one"
    with pytest.raises(UsageError, match=r"lists 2 models: choose one with --model \(a, b\)"):
        run(serve(models=("a", "b")))


def test_a_run_repeated_with_the_same_seed_is_cold_again(serve) -> None:
    state = serve()
    first, second = run(state, seed=1), run(state, seed=1)
    assert (first["verdict"], second["verdict"]) == ("reused", "reused")
    assert first["prompt_sha256"] == second["prompt_sha256"]
    assert first["nonce"] != second["nonce"]
    assert second["requests"][0]["cached_tokens"] == 0


def test_every_prompt_begins_with_its_nonce(serve) -> None:
    state = serve()
    record = run(state, questions=2)
    starts = [body["messages"][0]["content"].split()[0] for body in state.bodies]
    warm_up, cold, *warm, control = starts
    assert cold == record["nonce"] and warm == [record["nonce"]] * 2 and control == record["control_nonce"]
    assert len({warm_up[0], cold[0], control[0]}) == 3
    assert all(body["messages"][0]["role"] == "system" for body in state.bodies)


def test_the_warm_up_is_another_prompt_of_the_same_shape_and_timed_apart(serve) -> None:
    state = serve(first_request_s=0.3, cache=False, token_s=SLOW)
    record = run(state, prefix_words=600)
    warm_up, cold = (body["messages"][0]["content"].split()[1:] for body in state.bodies[:2])
    assert warm_up != cold and sorted(warm_up) == sorted(cold)
    assert record["verdict"] == "not_reused"
    assert record["warm_up_s"] > record["cold_s"]
    phases = [request["phase"] for request in record["requests"] if request["group"] == 1]
    assert phases[:5] == ["cold", "warm", "warm", "warm", "control"] and set(phases[5:]) <= {"short"}


def test_warm_prompts_differ_from_the_cold_one_only_behind_the_shared_text(serve) -> None:
    state = serve()
    record = run(state, questions=12)
    sent = [json.dumps(body["messages"]) for body in state.bodies[1:14]]
    assert len(set(sent)) == 13
    shared_bytes = len(state.bodies[1]["messages"][0]["content"])
    assert all(r["differs_from_cold_at_byte"] > shared_bytes for r in record["requests"] if r["phase"] == "warm")
    assert record["requests"][0]["differs_from_cold_at_byte"] is None
    assert record["requests"][-1]["differs_from_cold_at_byte"] < 100


def test_a_cold_request_that_was_warm_is_contaminated(serve) -> None:
    record = run(serve(preloaded=True))
    assert record["verdict"] == "contaminated"


def test_other_traffic_is_contamination(serve) -> None:
    record = run(serve(foreign_tokens=60))
    assert record["verdict"] == "contaminated"
    assert "other traffic" in record["verdict_reason"]


def test_a_restart_in_the_middle_is_contamination(serve) -> None:
    record = run(serve(restarts_at_request=4))
    assert record["verdict"] == "contaminated"
    assert "restarted" in record["verdict_reason"]


def test_counters_that_lie_are_told_beside_a_clock_that_does_not(serve) -> None:
    record = run(serve(token_s=SLOW, usage=False, hits_told=lambda hits: 0), prefix_words=600)
    assert record["verdict"] == "inconclusive"
    assert supports(record) == {"clock": "reused", "cached_tokens": None, "counters": "not_reused"}
    assert record["verdict_reason"].startswith("the signals disagree: clock")
    assert "hit_rate" not in json.dumps(record)


def test_cached_tokens_that_are_always_told_are_no_evidence(serve) -> None:
    record = run(serve(hits_told=lambda hits: 190, cached_tokens=False, cache=False), prefix_words=200)
    assert record["signals"]["counters"]["supports"] is None
    assert record["verdict"] in ("contaminated", "inconclusive")


def test_a_shared_prefix_below_one_page_is_told_in_words(serve) -> None:
    record = run(serve(tokenizes=True, page_tokens=128), prefix_words=20)
    assert record["verdict"] == "inconclusive"
    assert record["verdict_reason"].startswith("the shared prefix of 25 tokens is below one page of 128")


def test_a_prefix_above_one_page_of_a_large_page_server_is_reused(serve) -> None:
    record = run(serve(page_tokens=128), prefix_words=200)
    assert (record["verdict"], record["page_tokens"]) == ("reused", 128)
    assert record["signals"]["cached_tokens"]["value"] == 128


def test_one_failed_warm_request_survives_in_the_record(serve) -> None:
    record = run(serve(fails_at_request=(4,)))
    assert (record["failed"], record["warm_s"]["count"], record["verdict"]) == (1, 2, "reused")
    assert "out of memory at request 4" in record["first_error"]
    assert [request["error"] is None for request in record["requests"]] == [True, True, False, True, True]


def test_a_failed_control_leaves_the_pair_measured(serve) -> None:
    record = run(serve(fails_at_request=(6,)))
    assert (record["verdict"], record["failed"], record["control_s"]) == ("reused", 1, None)
    assert record["absent"]["control_s"] == "the control request failed"


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ((1,), "the warm-up request failed"),
        ((2,), "the cold request failed"),
        ((3, 4, 5), "not one of 3 warm requests"),
    ],
)
def test_without_a_pair_there_is_no_record(serve, failing: tuple[int, ...], said: str) -> None:
    with pytest.raises(ServerError, match=said):
        run(serve(fails_at_request=failing))


def test_llama_servers_timings_and_counters_are_understood(serve) -> None:
    record = run(serve(engine="llamacpp", timings=True, cached_tokens=False))
    assert (record["engine"], record["verdict"]) == ("llama-server", "reused")
    assert record["server_timings_sample"]["warm"]["cache_n"] == 192
    assert supports(record)["cached_tokens"] == supports(record)["counters"] == "reused"


def test_a_server_that_counts_under_another_name_of_its_model_is_still_read(serve) -> None:
    state = serve(models=("canonical",))
    assert run(state, model="alias")["signals"]["counters"]["supports"] == "reused"


def test_refused_fields_are_written_down(serve) -> None:
    record = run(serve(refused_fields=("stream_options",)))
    assert record["dropped_fields"] == ["stream_options"]
    assert record["prompt_tokens"] is None and record["absent"]["prompt_tokens"]
    assert record["verdict"] == "reused"


def test_answers_without_a_first_token_are_timed_as_a_whole(serve) -> None:
    assert run(serve(streams=False))["timed"] == "time to the whole answer"
    assert run(serve())["timed"] == "time to first token"


def test_no_secret_enters_the_record(serve) -> None:
    state = serve(fails_at_request=(4,))
    url = state.url.replace("http://", "http://me:hunter2@")
    record = measure(url, prefix_words=50, api_key="sk-secret", timeout_s=10.0)
    assert state.headers[0]["Authorization"] == "Bearer sk-secret"
    for secret in ("sk-secret", "hunter2"):
        assert secret not in json.dumps(record)


@pytest.mark.parametrize(
    "options",
    [
        {"prefix_words": 0},
        {"questions": 0},
        {"answer_tokens": 0},
        {"timeout_s": 0.0},
        {"timeout_s": float("nan")},
        {"timeout_s": float("inf")},
        {"prefix_text": "  \n"},
    ],
)
def test_a_plan_without_sense_is_refused(options: dict) -> None:
    with pytest.raises(UsageError):
        Plan(**options)


def test_options_refine_a_given_plan(serve) -> None:
    record = measure(serve().url, Plan(prefix_words=50, label="a"), label="b", timeout_s=10.0)
    assert (record["label"], record["prefix_source"]) == ("b", "synthetic, 50 words, seed 0")


def test_answers_are_as_long_as_asked_and_the_record_says_so(serve) -> None:
    state = serve()
    record = run(state, answer_tokens=2)
    assert {body["max_tokens"] for body in state.bodies} == {2}
    assert record["answer_tokens"] == 2


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("told", NOT_FINITE)
@pytest.mark.parametrize("streams", [True, False])
def test_a_number_that_is_none_costs_its_own_field_and_not_the_measurement(serve, told: float, streams: bool) -> None:
    broken = {"prompt_tokens": told, "completion_tokens": told}
    record = run(serve(timings=True, streams=streams, usage_told=broken, timings_told={"prompt_ms": told}))
    assert from_line(to_line(record)) == record
    assert (record["verdict"], record["prompt_tokens"]) == ("reused", None)
    assert record["absent"]["prompt_tokens"] == "usage holds a prompt_tokens that is no number of tokens"
    for phase in ("cold", "warm"):
        timings = record["server_timings_sample"][phase]
        assert timings["prompt_ms"] is None and timings["prompt_n"] > 0
        assert record["absent"][f"server_timings_sample.{phase}.prompt_ms"] == "the server told no finite number"
    for request in record["requests"]:
        assert request["completion_tokens"] is None and "completion_tokens" in request["absent"]


def test_timings_of_a_shape_that_no_record_needs_are_null(serve) -> None:
    deep: list = []
    for _ in range(400):
        deep = [deep]
    record = run(serve(timings=True, timings_told={"prompt_ms": deep}))
    assert from_line(to_line(record)) == record
    assert record["server_timings_sample"]["cold"]["prompt_ms"] is None


def test_an_endless_metrics_page_leaves_the_other_signals(serve) -> None:
    record = run(serve(endless_metrics=True))
    assert "longer than 4 MiB" in record["signals"]["counters"]["why"]
    assert supports(record)["cached_tokens"] == "reused"


@pytest.mark.parametrize("seconds", [1e300, 86_401.0])
def test_a_timeout_of_more_than_a_day_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="at most a day"):
        Plan(timeout_s=seconds)
