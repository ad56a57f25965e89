from __future__ import annotations

import pytest

from labs.kit.predictions import Prediction, PredictionError


def smaller(ratio: float = 0.5) -> Prediction:
    return Prediction("warm", "smaller", ratio)


def test_every_pair_pointing_the_predicted_way_supports_it() -> None:
    outcome = smaller().judge(measured=[0.2, 0.3, 0.25], baseline=[1.0, 0.9])
    assert outcome.verdict == "supported"
    assert outcome.low == pytest.approx(0.2) and outcome.high == pytest.approx(0.3 / 0.9)


def test_no_pair_pointing_the_predicted_way_refutes_it() -> None:
    assert smaller().judge(measured=[1.0, 1.1], baseline=[1.0]).verdict == "refuted"
    assert smaller().judge(measured=[2.0], baseline=[1.0]).verdict == "refuted"


def test_pairs_that_disagree_are_inconclusive() -> None:
    assert smaller().judge(measured=[0.2, 1.4], baseline=[1.0]).verdict == "inconclusive"


def test_a_change_below_the_smallest_effect_of_interest_is_no_change() -> None:
    same = Prediction("off", "same", 1.0, smallest_effect=0.15)
    assert same.judge(measured=[0.9, 1.1], baseline=[1.0]).verdict == "supported"
    assert smaller().judge(measured=[0.9], baseline=[1.0]).verdict == "refuted"


def test_the_same_is_refuted_by_a_large_change_and_left_open_by_a_wide_spread() -> None:
    same = Prediction("off", "same", 1.0)
    assert same.judge(measured=[0.3, 0.4], baseline=[1.0]).verdict == "refuted"
    assert same.judge(measured=[0.6, 1.1], baseline=[1.0]).verdict == "inconclusive"
    assert same.judge(measured=[0.5, 2.0], baseline=[1.0]).verdict == "inconclusive"


def test_larger_is_the_mirror_of_smaller() -> None:
    larger = Prediction("wait", "larger", 2.0)
    assert larger.judge(measured=[1.8, 2.5], baseline=[1.0]).verdict == "supported"
    assert larger.judge(measured=[0.5], baseline=[1.0]).verdict == "refuted"


def test_the_size_is_judged_as_a_factor_in_both_directions() -> None:
    assert smaller(0.5).judge([0.25], [1.0]).off_by_factor == pytest.approx(2.0)
    assert smaller(0.125).judge([0.25], [1.0]).off_by_factor == pytest.approx(2.0)


def test_a_measured_zero_has_no_factor_and_no_infinity_in_the_record() -> None:
    fields = smaller().judge([0.0], [1.0]).as_dict()
    assert fields["verdict"] == "supported" and fields["off_by_factor"] is None


def test_the_reason_holds_the_verdict_and_both_sizes() -> None:
    reason = smaller(0.5).judge([0.25], [1.0]).reason
    assert "supported" in reason and "0.5" in reason and "0.25" in reason


@pytest.mark.parametrize(
    ("direction", "ratio", "smallest_effect", "named"),
    [
        ("faster", 0.5, 0.15, "direction is 'faster'"),
        ("smaller", 1.5, 0.15, "contradict"),
        ("smaller", 0.9, 0.15, "contradict"),
        ("same", 0.5, 0.15, "contradict"),
        ("smaller", 0.0, 0.15, "ratio is 0.0"),
        ("larger", float("nan"), 0.15, "ratio is nan"),
        ("same", 1.0, 1.5, "smallest_effect is 1.5"),
    ],
)
def test_a_prediction_that_makes_no_sense_is_refused_with_its_value(
    direction: str, ratio: float, smallest_effect: float, named: str
) -> None:
    with pytest.raises(PredictionError, match=named):
        Prediction("topic", direction, ratio, smallest_effect)  # type: ignore[arg-type]


@pytest.mark.parametrize(("measured", "baseline"), [([], [1.0]), ([1.0], []), ([1.0], [0.0])])
def test_nothing_to_compare_is_an_error_and_no_verdict(measured: list[float], baseline: list[float]) -> None:
    with pytest.raises(PredictionError, match="cannot judge"):
        smaller().judge(measured, baseline)
