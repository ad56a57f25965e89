"""Ratios with intervals: known answers, and how often they are right on noise whose truth is known."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labbook.statistics import Interval, Line, TimedGroup, bootstrap, least_squares, ratio_interval

TIMES = st.lists(st.floats(0.001, 100), min_size=1, max_size=4)
GROUPS = st.lists(st.builds(TimedGroup, TIMES.map(tuple), TIMES.map(tuple)), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(GROUPS, st.integers(0, 5))
def test_an_interval_is_the_same_for_the_same_seed_and_lies_within_the_ratios(groups, seed: int) -> None:
    interval = ratio_interval(groups, seed=seed)
    ratios = [ratio for group in groups for ratio in group.ratios()]
    assert interval == ratio_interval(groups, seed=seed)
    assert min(ratios) <= interval.low <= interval.high <= max(ratios)
    assert min(ratios) <= interval.value <= max(ratios)


@settings(max_examples=25, deadline=None)
@given(GROUPS, st.floats(0.1, 10))
def test_a_faster_machine_changes_no_ratio(groups, factor: float) -> None:
    def faster(seconds: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(second * factor for second in seconds)

    other = [TimedGroup(faster(group.judged_s), faster(group.without_s)) for group in groups]
    assert ratio_interval(other).value == pytest.approx(ratio_interval(groups).value)


def test_below_three_groups_the_interval_is_the_least_and_the_largest_ratio_and_has_no_confidence() -> None:
    one = ratio_interval([TimedGroup((1.0, 3.0), (2.0,))])
    assert (one.value, one.low, one.high, one.confidence, one.held) == (1.0, 0.5, 1.5, None, "least and largest")
    two = ratio_interval([TimedGroup((1.0,), (2.0,)), TimedGroup((8.0,), (2.0,))])
    assert (two.low, two.high) == (0.5, 4.0)


def test_from_three_groups_on_whole_groups_are_drawn() -> None:
    same = ratio_interval([TimedGroup((1.0, 3.0), (2.0,))] * 3)
    assert (same.value, same.low, same.high, same.held) == (1.0, 1.0, 1.0, "at 95%")


def test_a_higher_confidence_is_a_wider_interval() -> None:
    groups = [TimedGroup((value,), (1.0,)) for value in (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)]
    narrow, wide = ratio_interval(groups, 0.5), ratio_interval(groups, 0.99)
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high
    assert wide.high - wide.low > narrow.high - narrow.low


def test_a_95_percent_interval_holds_the_median_in_about_95_of_100_noisy_measurements() -> None:
    """Lognormal noise, and every tenth request takes three times as long. The truth is a ratio of 1."""
    generator = random.Random(7)

    def request() -> float:
        return generator.lognormvariate(0, 0.2) * (3 if generator.random() < 0.1 else 1)

    def holds() -> bool:
        groups = [TimedGroup((request(), request(), request()), (request(), request())) for _ in range(12)]
        interval = ratio_interval(groups)
        return interval.low <= 1 <= interval.high

    assert sum(holds() for _ in range(30)) >= 26


def test_a_clock_that_saw_no_time_divides_by_a_tick() -> None:
    assert TimedGroup((0.0,), (0.0,)).ratios() == [0.0]


def test_a_group_without_times_is_refused() -> None:
    with pytest.raises(ValueError, match="a judged time"):
        TimedGroup((), (1.0,))
    with pytest.raises(ValueError, match="no group"):
        ratio_interval([])
    with pytest.raises(ValueError, match="confidence is 95"):
        Interval(1, 1, 1, 95, 10, 0)


def test_the_percentiles_of_a_known_distribution_are_found() -> None:
    interval = bootstrap(lambda generator: generator.random(), 0.5, 0.9, resamples=5000)
    assert interval.low == pytest.approx(0.05, abs=0.02)
    assert interval.high == pytest.approx(0.95, abs=0.02)


@given(st.floats(-5, 5), st.floats(-5, 5), st.lists(st.integers(-100, 100), min_size=2, max_size=6, unique=True))
def test_points_on_a_line_give_that_line(fixed: float, slope: float, places: list[int]) -> None:
    line = least_squares([(place, fixed + slope * place) for place in places])
    assert (line.fixed, line.slope) == (pytest.approx(fixed, abs=1e-6), pytest.approx(slope, abs=1e-6))


def test_a_line_of_known_points() -> None:
    assert least_squares([(0, 1), (1, 1), (2, 4)]) == Line(pytest.approx(0.5), pytest.approx(1.5))
    with pytest.raises(ValueError, match="two different places"):
        least_squares([(1, 1), (1, 2)])
