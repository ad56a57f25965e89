from __future__ import annotations

import random
from collections import Counter

import pytest

from labs.kit.predictions import ENOUGH_REPEATS, Direction, Outcome, Prediction, PredictionError, direction_of


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
    assert larger.judge(measured=[0.5, 2.5], baseline=[1.0]).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("ratio", "named"), [(0.84, "smaller"), (0.85, "same"), (1.0, "same"), (1.15, "same"), (1.16, "larger")]
)
def test_the_bounds_of_the_same_belong_to_the_same(ratio: float, named: Direction) -> None:
    assert direction_of(ratio, 0.15) == named


def test_enough_repeats_have_an_interval_that_one_straggler_does_not_widen() -> None:
    """One of ten values is 6; a resampled median is above 0.50 only if five or more of ten draws take it: 0.2 %."""
    measured = [0.50] * 9 + [6.0]
    outcome = smaller().judge(measured, baseline=[1.0] * 10)
    assert outcome.interval.confidence == 0.95 and outcome.verdict == "supported"
    assert (outcome.low, outcome.ratio, outcome.high) == (0.5, 0.5, 0.5)
    assert "0.50 to 0.50 at 95%, from 10 and 10 values" in outcome.reason
    few = smaller().judge(measured[-3:], baseline=[1.0] * 10)
    assert few.interval.confidence is None and few.verdict == "inconclusive"
    assert "single pairs 0.50 to 6.00; 3 and 10 values are too few for more" in few.reason


def test_one_count_against_another_has_no_spread_to_speak_of() -> None:
    outcome = smaller(0.25).judge([32], [160])
    assert outcome.reason == (
        "warm: supported. You said smaller, about 0.25 of the baseline. "
        "It was 0.20, so your size was off by a factor of 1.2."
    )


def test_the_interval_is_the_same_in_every_run() -> None:
    generator = random.Random(1)
    measured, baseline = ([generator.lognormvariate(0, 0.4) for _ in range(12)] for _ in "ab")
    assert smaller().judge(measured, baseline) == smaller().judge(measured, baseline)


def verdicts(prediction: Prediction, true_ratio: float, num_values: int, sigma: float = 0.2) -> Counter[str]:
    """Verdicts of 120 measurements with log-normal times, as clocks give them."""
    generator = random.Random(f"verdicts {true_ratio} {num_values}")

    def times(scale: float) -> list[float]:
        return [scale * generator.lognormvariate(0, sigma) for _ in range(num_values)]

    return Counter(prediction.judge(times(true_ratio), times(1.0)).verdict for _ in range(120))


@pytest.mark.parametrize("num_values", [3, ENOUGH_REPEATS, 12])
def test_what_is_not_so_is_hardly_ever_supported_and_what_is_so_hardly_ever_refuted(num_values: int) -> None:
    """At the bound itself a claim is as false as it is true: the worst case, where 2.5 % each are to be expected."""
    at_the_bound = verdicts(smaller(), 0.85, num_values)
    assert at_the_bound["supported"] <= 9 and at_the_bound["refuted"] <= 9
    assert verdicts(smaller(), 1.0, num_values)["supported"] <= 2
    assert verdicts(smaller(), 0.5, num_values)["refuted"] == 0
    assert verdicts(Prediction("off", "same", 1.0), 1.3, num_values)["supported"] <= 2


def test_more_repeats_decide_what_few_leave_open() -> None:
    few, many = (verdicts(smaller(), 0.6, num_values)["supported"] for num_values in (3, 12))
    assert few < 70 < 110 <= many


def test_the_same_needs_a_narrow_interval_and_no_mere_lack_of_difference() -> None:
    same = Prediction("off", "same", 1.0, smallest_effect=0.2)
    assert verdicts(same, 1.0, 12, sigma=0.4)["supported"] < 12
    assert verdicts(same, 1.0, 12, sigma=0.05)["supported"] == 120


def test_the_limits_of_few_values_hold_every_pair_whatever_their_sign() -> None:
    outcome = smaller().judge(measured=[-0.1, 0.2], baseline=[1.0, 2.0])
    assert (outcome.low, outcome.high) == (-0.1, 0.2)


def test_the_size_is_judged_as_a_factor_in_both_directions() -> None:
    assert smaller(0.5).judge([0.25], [1.0]).off_by_factor == pytest.approx(2.0)
    assert smaller(0.125).judge([0.25], [1.0]).off_by_factor == pytest.approx(2.0)


@pytest.mark.parametrize("measured", [0.0, -0.1])
def test_nothing_measured_has_no_factor_and_no_infinity_in_the_record(measured: float) -> None:
    outcome: Outcome = smaller().judge([measured], [1.0])
    assert outcome.as_dict()["verdict"] == "supported" and outcome.as_dict()["off_by_factor"] is None
    assert outcome.reason.endswith(f"It was {measured:.2f}.")


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
