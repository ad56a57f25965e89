"""Repeat, control, eviction, and groups: what is sent, and what is said of it, on a server that behaves as asked."""

from __future__ import annotations

import json

import pytest

from labbook.errors import ServerError, UsageError
from labbook.experiments import IN_GROUPS, experiment_named, is_control_first
from labbook.measure import measure
from labbook.record import from_line, to_line
from labbook.report import as_text, can_tell

DESIGN_FIELDS = {"cold_s", "warm_s", "warm_over_cold", "cache_metrics_delta", "signals", "verdict", "failed", "absent"}

SEED_OF_A_CONTROL_FIRST = 0  # in the third group


def run(state, experiment: str, **options) -> dict:
    return measure(state.url, experiment=experiment, **{"prefix_words": 60, "timeout_s": 10.0, **options})


def phases(record: dict) -> list[str]:
    return [request["phase"] for request in record["requests"]]


def system_prompts(state) -> list[str]:
    return [body["messages"][0]["content"] for body in state.bodies]


def cached(record: dict, phase: str) -> list[int]:
    return [request["cached_tokens"] for request in record["requests"] if request["phase"] == phase]


@pytest.mark.parametrize("experiment", IN_GROUPS)
def test_every_experiment_is_one_record_that_can_be_kept_and_told(serve, experiment: str) -> None:
    record = run(serve(), experiment)
    assert record.keys() >= DESIGN_FIELDS
    assert record["experiment"] == experiment_named(experiment).name
    assert from_line(to_line(record)) == record
    assert can_tell(record) and f"verdict: {record['verdict']}." in as_text(record)
    nulls = {name for name, value in record.items() if value is None} - {"first_error"}
    assert nulls == record["absent"].keys()


def test_a_repeat_sends_the_same_bytes_again(serve) -> None:
    state = serve()
    record = run(state, "repeat")
    _, cold, *warm, control = state.bodies
    assert [json.dumps(body) for body in warm] == [json.dumps(cold)] * 3
    assert control != cold
    same = [request["body_sha256"] for request in record["requests"][:4]]
    assert len(set(same)) == 1
    assert [request["differs_from_cold_at_byte"] for request in record["requests"][:4]] == [None] * 4
    assert (record["verdict"], cached(record, "warm")) == ("reused", [64, 64, 64])


def test_a_repeat_with_the_cache_off_is_not_reused(serve) -> None:
    assert run(serve(cache=False), "repeat")["verdict"] == "not_reused"


def test_the_control_changes_one_letter_at_the_start_and_nothing_else(serve) -> None:
    state = serve()
    record = run(state, "control")
    _, cold, warm, *_, control = system_prompts(state)
    assert warm == cold
    assert control[0] != cold[0] and control[1:] == cold[1:]
    assert phases(record) == ["cold", "warm", "warm", "warm", "control"]
    assert (record["verdict"], cached(record, "control")) == ("not_reused", [0])
    assert record["signals"]["counters"]["supports"] == "not_reused"


def test_a_cache_that_reuses_behind_a_changed_start_is_found_by_the_control(serve) -> None:
    record = run(serve(reuses_behind_a_change=True), "control")
    assert (record["verdict"], cached(record, "cold"), cached(record, "control")) == ("reused", [0], [64])


def test_a_control_tells_nothing_where_the_unchanged_prompt_is_not_reused_either(serve) -> None:
    record = run(serve(cache=False), "control")
    assert record["verdict"] == "inconclusive"
    assert record["verdict_reason"].startswith("nothing to tell: the warm requests were not seen to reuse anything")


def test_a_prefix_that_competitors_push_out_is_lost(serve) -> None:
    state = serve(most_stored=3)
    record = run(state, "eviction", competitors=4)
    assert phases(record) == ["cold", "warm", *["competing"] * 4, "again"]
    assert (cached(record, "warm"), cached(record, "again")) == ([64], [0])
    assert (record["verdict"], record["competitors"]) == ("not_reused", 4)
    prompts = system_prompts(state)[1:]
    assert prompts[0] == prompts[1] == prompts[-1]
    assert len({prompt[0] for prompt in prompts}) == 5


def test_a_prefix_that_the_cache_has_room_for_survives(serve) -> None:
    record = run(serve(most_stored=8), "eviction", competitors=4)
    assert (record["verdict"], cached(record, "again")) == ("reused", [64])
    assert "the again phase added 64 hit tokens" in record["verdict_reason"]


def test_an_eviction_tells_nothing_where_nothing_was_reused_before(serve) -> None:
    record = run(serve(cache=False), "eviction", competitors=2)
    assert record["verdict"] == "inconclusive"


def test_an_eviction_needs_its_first_prompt_again(serve) -> None:
    with pytest.raises(ServerError, match="not one of 1 again requests succeeded"):
        run(serve(fails_at_request=(6,)), "eviction", competitors=2)


def test_each_group_is_cold_by_nonces_of_its_own(serve) -> None:
    state = serve()
    record = run(state, "pair", repeats=4, questions=2)
    nonces = [nonce for group in record["nonces"] for nonce in group.values()]
    assert len(set(nonces)) == 8 and record["groups"] == 4
    assert cached(record, "cold") == cached(record, "control") == [0] * 4
    assert cached(record, "warm") == [64] * 8
    assert record["cache_metrics_delta"]["hits_tokens"] == 8 * 64
    assert [request["group"] for request in record["requests"]] == [group for group in range(1, 5) for _ in range(4)]
    assert record["signals"]["clock"]["details"]["groups"] == 4


def test_the_control_comes_first_in_half_of_the_groups_and_never_between_cold_and_warm(serve) -> None:
    record = run(serve(), "pair", repeats=6, questions=1)
    groups = [phases(record)[start : start + 3] for start in range(0, 18, 3)]
    assert groups[0] == ["cold", "warm", "control"]
    assert groups.count(["control", "cold", "warm"]) == groups.count(["cold", "warm", "control"]) == 3


def test_the_order_is_random_and_balanced_in_every_two_groups() -> None:
    orders = {tuple(is_control_first(group, seed) for group in range(1, 21)) for seed in range(20)}
    assert len(orders) > 10
    for order in orders:
        assert order[0] is False
        assert all(sum(order[start : start + 2]) == 1 for start in range(0, 20, 2))


def test_a_group_that_fails_costs_its_own_times_and_not_the_measurement(serve) -> None:
    """Request 7 is the control of the second group, request 8 its cold one."""
    record = run(serve(fails_at_request=(8,)), "pair", repeats=3)
    assert (record["failed"], record["verdict"]) == (1, "reused")
    assert [request["phase"] for request in record["requests"] if request["group"] == 2] == ["control", "cold"]
    assert record["signals"]["clock"]["details"]["groups"] == 2


def test_a_group_is_added_only_while_there_is_time(serve) -> None:
    alone = {"usage": False, "metrics": False, "token_s": 0.001}
    assert run(serve(**alone), "pair", most_s=0.01)["groups"] == 1
    assert run(serve(**alone), "pair", most_s=60.0)["groups"] >= 3


def test_counts_decide_after_three_groups_where_the_clock_tells_now_this_and_now_that(serve) -> None:
    """Every second request stalls: a warm one in some groups, one without reuse in others."""
    record = run(serve(cache=False, delays_s=(0.18, 0.06)), "pair", questions=1, seed=SEED_OF_A_CONTROL_FIRST)
    assert record["groups"] == 3
    assert record["signals"]["clock"]["supports"] is None
    assert record["signals"]["cached_tokens"]["supports"] == record["verdict"] == "not_reused"


@pytest.mark.parametrize("options", [{"repeats": 0}, {"competitors": 0}, {"competitors": 257}, {"most_s": 0.0}])
def test_numbers_without_sense_are_refused(serve, options: dict) -> None:
    with pytest.raises(UsageError):
        run(serve(), "eviction", **options)


def test_an_experiment_that_is_none_is_refused(serve) -> None:
    with pytest.raises(UsageError, match="choose one of pair, repeat, control, eviction"):
        run(serve(), "guess")
