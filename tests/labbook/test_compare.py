"""Two runs side by side, and the ones that may not stand there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.compare import NotComparableError, Row, compare
from tests.labbook.examples import cold_warm

OFF: dict[str, Any] = {
    "label": "off",
    "cold_s": 4.4,
    "warm_s": {"count": 5, "p50": 4.0, "mean": 4.0, "min": 3.9, "max": 4.1},
    "verdict": "not_reused",
}


def row(rows: tuple[Row, ...], name: str) -> Row:
    (found,) = [row for row in rows if row.name == name]
    return found


def test_counts_and_times_stand_side_by_side_with_their_ratio() -> None:
    comparison = compare(cold_warm(), cold_warm(**OFF))
    assert comparison.verdicts == ("reused", "not_reused")
    cached = row(comparison.counts, "cached tokens, warm")
    assert (cached.a, cached.b, cached.unit, cached.ratio) == (592, 592, "tokens", 1)
    hits = row(comparison.counts, "counters, hits tokens")
    assert (hits.a, hits.b) == (1776, 1776)
    warm = row(comparison.times, "warm, median")
    assert (warm.a, warm.b, warm.unit, warm.ratio) == (0.2, 4.0, "s", 20)
    assert warm.b_reach is not None and (warm.b_reach.low, warm.b_reach.what) == (3.9, "range of 5")
    assert row(comparison.times, "cold").ratio == pytest.approx(1.1)


def test_an_interval_is_shown_where_a_record_carries_one() -> None:
    interval = {"value": 0.05, "low": 0.04, "high": 0.07, "confidence": 0.95}
    comparison = compare(cold_warm(warm_over_cold_interval=interval), cold_warm())
    ratio = row(comparison.times, "warm over cold")
    assert ratio.a_reach is not None and (ratio.a_reach.low, ratio.a_reach.high) == (0.04, 0.07)
    assert ratio.a_reach.what == "0.95 interval" and ratio.b_reach is None


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"model": "m2"}, "model is m1 in A and m2 in B"),
        ({"kv_precision": "8 bits"}, "KV precision is float32 in A and 8 bits in B"),
        ({"prompt_sha256": "cd" * 32}, f"prompt hash is {'ab' * 32} in A and {'cd' * 32} in B"),
        ({"environment": {"device": "Mac"}}, "machine is Linux x86_64, 2 CPU cores in A and Mac in B"),
        ({"experiment": "eviction"}, "experiment is cold_warm in A and eviction in B"),
        (
            {"identity": {"page_size": "32", "dtype": "float32"}},
            "identity is {dtype: float32, page_size: 16} in A and {dtype: float32, page_size: 32} in B",
        ),
    ],
)
def test_runs_that_differ_in_a_condition_are_refused_by_name_with_both_values(
    values: dict[str, Any], named: str
) -> None:
    with pytest.raises(NotComparableError) as refused:
        compare(cold_warm(), cold_warm(**values))
    assert named in str(refused.value) and "--force" in str(refused.value)


def test_everything_that_differs_is_named_at_once() -> None:
    with pytest.raises(NotComparableError, match=r"model is.*KV precision is"):
        compare(cold_warm(), cold_warm(model="m2", kv_precision="8 bits"))


def test_force_compares_and_says_so() -> None:
    comparison = compare(cold_warm(), cold_warm(model="m2"), force=True)
    assert [(it.name, it.a, it.b) for it in comparison.differing] == [("model", "m1", "m2")]
    assert comparison.as_dict()["forced"] is True


def test_the_order_of_identity_fields_is_no_difference() -> None:
    assert compare(cold_warm(), cold_warm(identity={"dtype": "float32", "page_size": "16"})).differing == []


@pytest.mark.parametrize("values", [{"identity": None}, {"identity": {}}, {"kv_precision": ""}])
def test_a_condition_that_one_side_does_not_tell_is_not_known_and_never_equal(values: dict[str, Any]) -> None:
    (name,) = values
    shown_name = {"identity": "identity", "kv_precision": "KV precision"}[name]
    for one, other in ((values, {}), ({}, values), (values, values)):
        comparison = compare(cold_warm(**one), cold_warm(**other))
        assert [it.name for it in comparison.unknown] == [shown_name]
        assert shown_name not in comparison.as_dict()["same"]


def test_a_field_that_is_missing_is_not_known() -> None:
    other = cold_warm()
    del other["prompt_sha256"], other["control_s"], other["cache_metrics_delta"]
    comparison = compare(cold_warm(), other)
    assert [it.name for it in comparison.unknown] == ["prompt hash"]
    assert row(comparison.times, "control").b is None and row(comparison.times, "control").ratio is None
    assert row(comparison.counts, "counters, hits tokens").b is None


def test_zero_gives_no_ratio() -> None:
    assert row(compare(cold_warm(), cold_warm()).counts, "cached tokens, cold").ratio is None


def test_bursts_are_compared_by_their_own_numbers() -> None:
    def burst(tokens: int) -> dict[str, Any]:
        identical = {"computed_tokens": tokens, "first_token_mean_s": 1.5, "computed_over_cold": 4.0, "requests": [{}]}
        return cold_warm(experiment="burst", bursts={"identical": identical})

    comparison = compare(burst(4000), burst(1000))
    assert row(comparison.counts, "bursts, identical, computed tokens").ratio == 0.25
    assert row(comparison.counts, "bursts, identical, computed over cold").unit == "ratio"
    assert row(comparison.times, "bursts, identical, first token mean").a == 1.5


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labbook:
    monkeypatch.setenv("LABBOOK", str(tmp_path / "labbook.md"))
    kept = Labbook(tmp_path / "labbook.md")
    for record in (
        cold_warm(),
        cold_warm(**OFF),
        cold_warm(label="other", model="m2"),
        cold_warm(label="on", cold_s=3.0),
    ):
        kept.append(record)
    return kept


def test_records_are_named_by_number_from_the_end_or_by_label(
    book: Labbook, capsys: pytest.CaptureFixture[str]
) -> None:
    for names, numbers in ((("1", "-3"), (1, 2)), (("off", "on"), (2, 4)), (("on", "2"), (4, 2))):
        assert labbook(["compare", *names, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["a"], told["b"]) == numbers
    assert labbook(["compare", "on", "nowhere"]) == 2
    assert "no record has the label 'nowhere'" in capsys.readouterr().err


def test_the_command_tells_counts_before_times(book: Labbook, capsys: pytest.CaptureFixture[str]) -> None:
    assert labbook(["compare", "1", "off"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A  record 1, on, lab, m1; verdict reused\nB  record 2, off, lab, m1; verdict not_reused\n")
    assert out.index("counts ") < out.index("cached tokens, warm") < out.index("times ") < out.index("warm, median")
    assert "no interval in either record" in out


def test_the_command_refuses_with_status_2_and_obeys_force(book: Labbook, capsys: pytest.CaptureFixture[str]) -> None:
    assert labbook(["compare", "on", "other"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "model is m1 in A and m2 in B" in err
    assert labbook(["compare", "on", "other", "--force"]) == 0
    assert "DIFFERS, compared by force: model, m1 in A and m2 in B" in capsys.readouterr().out
