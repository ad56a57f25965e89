"""The on/off pair: two recorded labels, judged together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.errors import LabbookError, UsageError
from labbook.measure import measure
from labbook.on_off import effect_interval, judge_on_off, last_labelled, what_differs


def side(verdict: str, warm_s: float, label: str = "", **fields) -> dict:
    def request(phase: str, seconds: float, group: int) -> dict:
        return {"phase": phase, "group": group, "error": None, "ttft_s": seconds}

    requests = []
    for group in (1, 2, 3):
        requests += [request("cold", 1.0, group), request("warm", warm_s, group), request("control", 1.0, group)]
    return {
        "experiment": "cold_warm",
        "label": label,
        "model": "m1",
        "timed": "time to first token",
        "prompt_sha256": "0" * 64,
        "verdict": verdict,
        "verdict_reason": "because",
        "requests": requests,
        "environment": {"device": "one machine"},
        "seed": 0,
        **fields,
    }


@pytest.mark.parametrize(
    ("on", "off", "word"),
    [
        (side("reused", 0.1), side("not_reused", 1.0), "reused"),
        (side("not_reused", 1.0), side("not_reused", 1.0), "not_reused"),
        (side("reused", 0.1), side("reused", 0.1), "inconclusive"),  # it was never switched off
        (side("inconclusive", 0.6), side("not_reused", 1.0), "inconclusive"),
        (side("contaminated", 0.1), side("not_reused", 1.0), "contaminated"),
        (side("reused", 0.1), side("contaminated", 1.0), "contaminated"),
        (side("reused", 1.0), side("not_reused", 1.0), "inconclusive"),  # by counts, and no time was saved
    ],
)
def test_two_verdicts_and_the_clock_make_one(on: dict, off: dict, word: str) -> None:
    assert judge_on_off(on, off)["verdict"] == word


def test_the_effect_is_the_quotient_of_both_ratios_with_an_interval() -> None:
    interval = effect_interval(side("reused", 0.2), side("not_reused", 0.8))
    assert interval is not None
    assert interval.value == pytest.approx(0.25)
    assert interval.low == pytest.approx(interval.high)


def test_records_that_differ_in_more_than_the_switch_are_no_pair() -> None:
    on, off = side("reused", 0.1), side("not_reused", 1.0, model="m2", environment={"device": "another"})
    assert what_differs(on, off) == ["model (m1 and m2)", "machine (one machine and another)"]
    with pytest.raises(UsageError, match=r"more than the switch differs.*model"):
        judge_on_off(on, off)
    forced = judge_on_off(on, off, despite_differences=True)
    assert (forced["verdict"], len(forced["differences"])) == ("reused", 2)


def test_a_record_of_something_else_is_no_side() -> None:
    with pytest.raises(UsageError, match="the record off is of experiment 'burst'"):
        judge_on_off(side("reused", 0.1), {"experiment": "burst"})


def test_a_side_without_a_pair_of_times_has_no_quotient_and_says_why() -> None:
    record = judge_on_off(side("reused", 0.1), side("not_reused", 1.0, requests=[]))
    assert record["on_over_off"] is None and "no group" in record["absent"]["on_over_off"]


def test_two_measured_labels_are_judged_recorded_and_told(serve, tmp_path: Path, capsys) -> None:
    book = Labbook(tmp_path / "labbook.md")
    state = serve(token_s=0.0005)
    book.append(measure(state.url, label="on", prefix_words=200, timeout_s=10.0))
    state.behaviour.cache = False
    book.append(measure(state.url, label="off", prefix_words=200, timeout_s=10.0))
    command = ["on-off", "on", "off", "--labbook", str(book.path)]
    assert labbook([*command, "--json", "--expect", "reused"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == book.records()[-1]
    assert (told["experiment"], told["verdict"], told["on"]["verdict"]) == ("on_off", "reused", "reused")
    assert labbook([*command, "--expect", "not_reused"]) == 3
    assert "verdict: reused. the switch makes the difference" in capsys.readouterr().out


def test_a_label_that_was_not_measured_is_told(tmp_path: Path) -> None:
    book = Labbook(tmp_path / "labbook.md")
    book.append({"label": "on", "experiment": "prediction"})
    with pytest.raises(LabbookError, match="no cold and warm pair labelled 'on'"):
        last_labelled(book, "on")
