"""What each signal supports, and what it cannot tell."""

import pytest

from labbook.signals import CounterDelta, cached_tokens, clock, counters
from labbook.statistics import TimedGroup


def groups(*told: tuple[list[float], list[float]]) -> list[TimedGroup]:
    """Each group as judged seconds and seconds without reuse."""
    return [TimedGroup(tuple(judged), tuple(without)) for judged, without in told]


@pytest.mark.parametrize(
    ("warm_s", "without_s", "supports"),
    [
        ([0.8, 0.8, 0.9], [5.5, 5.4], "reused"),
        ([0.8], [5.5], "reused"),
        ([5.4, 5.6, 5.5], [5.5, 5.5], "not_reused"),
        ([0.8, 0.9, 6.0], [5.5, 5.4], None),  # one group does not show that 6.0 is a straggler
        ([0.3, 0.3, 0.3], [3.3, 0.3], None),  # a slow first request is no cache
        ([0.19, 0.2, 0.21], [0.6, 0.2], None),  # a busy machine
        ([0.03, 0.03], [0.03, 0.03], None),  # too fast for a clock
        ([0.005, 0.005], [0.03, 0.03], "reused"),  # fast, and yet six times faster
        ([0.001, 0.001], [0.008, 0.008], None),  # a few milliseconds are no evidence
        ([0.78, 0.79, 0.8], [1.0, 1.0], None),  # something is saved, and not what reuse saves
        ([0.05, 0.05], [0.05, 1.0], None),  # cold was as fast as warm, the control was not
    ],
)
def test_the_clock_supports_only_what_it_can_see_in_one_group(warm_s, without_s, supports) -> None:
    assert clock(groups((warm_s, without_s))).supports == supports


def test_more_groups_show_that_one_slow_request_was_a_straggler() -> None:
    quiet, straggler = ([0.8, 0.9, 0.8], [5.5, 5.4]), ([0.8, 0.9, 6.0], [5.5, 5.4])
    signal = clock(groups(quiet, straggler, quiet))
    assert (signal.supports, signal.details["groups"]) == ("reused", 3)


def test_a_machine_that_becomes_slower_between_groups_is_no_effect() -> None:
    fast, slow = ([1.0, 1.0, 1.0], [1.0, 1.0]), ([2.0, 2.0, 2.0], [2.0, 2.0])
    assert clock(groups(fast, slow, slow)).supports == "not_reused"


def test_more_groups_are_asked_for_only_where_they_could_tell() -> None:
    def may_tell(warm_s: list[float], without_s: list[float], share: float | None = None) -> bool:
        return clock(groups((warm_s, without_s)), shared_share=share).details["more_groups_may_tell"]

    assert may_tell([0.2, 0.4], [0.3, 0.9])
    assert not may_tell([0.01, 0.02], [0.01, 0.03])  # too short
    assert not may_tell([1.0, 1.1], [1.0, 1.1], share=0.2)
    assert not may_tell([0.1, 0.1], [1.0, 1.0])


def test_equal_times_say_nothing_when_little_of_the_prompt_is_shared() -> None:
    signal = clock(groups(([5.0, 5.0], [5.0, 5.0])), shared_share=0.2)
    assert signal.supports is None
    assert "only 20% of the prompt is shared" in signal.why


def test_the_value_of_the_clock_is_the_median_ratio_within_groups_and_its_interval_stands_beside_it() -> None:
    signal = clock(groups(*[([seconds], [4.0]) for seconds in (1.0, 2.0, 3.0)]), confidence=0.9, seed=3)
    assert (signal.value, signal.unit) == (0.5, "warm / without reuse")
    interval = signal.details["interval"]
    assert (interval["low"], interval["high"], interval["confidence"], interval["seed"]) == (0.25, 0.75, 0.9, 3)
    assert "0.250 to 0.750 at 90% from 3 groups" in signal.why


def test_no_pair_of_times_makes_the_clock_absent() -> None:
    signal = clock([])
    assert (signal.value, signal.supports) == (None, None)
    assert signal.why == "no warm request succeeded beside one without reuse"


def test_usage_and_timings_that_differ_are_both_not_believed() -> None:
    signal = cached_tokens(0, [592, 592], 0, by_timings=[592, 0])
    assert signal.supports is None
    assert "usage says 592 and timings.cache_n 0 of the same request: they disagree" in signal.why
    agreeing = cached_tokens(0, [592, None], 0, by_timings=[592, 592])
    assert (agreeing.supports, agreeing.details["timings"]) == ("reused", [592, 592])


@pytest.mark.parametrize(
    ("cold", "warm", "control", "supports"),
    [
        (0, [592, 592, 592], 0, "reused"),
        (3, [380, 380], 3, "reused"),
        (16, [16, 16], 16, "not_reused"),  # only the template's head
        (0, [0, 0, 0], 0, "not_reused"),
        (0, [592, 0, 0], 0, None),  # one of three
        (0, [592, 592, 0], 0, "reused"),
        (None, [592, None], None, "reused"),  # some servers leave a zero out
        (None, [20, 20], None, "not_reused"),  # may be a template's head
        (0, [600, 600], 600, None),  # reported whatever the prefix is
    ],
)
def test_cached_tokens_count_beyond_the_templates_head(cold, warm, control, supports) -> None:
    assert cached_tokens(cold, warm, control, prompt_tokens=616).supports == supports


def test_absent_cached_tokens_are_null_with_the_reason() -> None:
    signal = cached_tokens(None, [None, None], None, missing_why="usage holds no prompt_tokens_details")
    assert (signal.value, signal.supports) == (None, None)
    assert signal.why == "usage holds no prompt_tokens_details"


def delta(hits, queries) -> CounterDelta:
    return CounterDelta(hits, queries)


@pytest.mark.parametrize(
    ("cold", "warm", "control", "supports"),
    [
        ((0, 600), (1776, 1800), (0, 600), "reused"),
        ((16, 600), (48, 1800), (16, 600), "not_reused"),
        ((0, 600), (0, 1800), (0, 600), "not_reused"),
        ((0, 0), (0, 0), (0, 0), "not_reused"),
        ((0, None), (1776, None), None, "reused"),
        ((0, 600), (1900, 1800), (0, 600), None),
        ((600, 600), (1776, 1800), (600, 600), None),
    ],
)
def test_counters_count_beyond_the_templates_head(cold, warm, control, supports) -> None:
    signal = counters(delta(*cold), delta(*warm), delta(*control) if control else None, num_warm=3)
    assert signal.supports == supports


def test_counters_that_did_not_move_are_told_apart_from_misses() -> None:
    still = counters(delta(0, 0), delta(0, 0), delta(0, 0), num_warm=3)
    missed = counters(delta(0, 600), delta(0, 1800), delta(0, 600), num_warm=3)
    assert "did not move" in still.why
    assert "added 0 hit tokens to 1800 queried" in missed.why


def test_the_head_that_counts_for_every_request_is_the_controls_share_of_it() -> None:
    """Six controls that share a template's head of 24 tokens are no warm cache, whatever they sum up to."""
    told = counters(delta(96, 2400), delta(288, 7200), delta(144, 3600), num_warm=12, num_cold=4, num_control=6)
    assert told.supports == "not_reused"


def test_absent_counters_are_null_with_the_reason() -> None:
    signal = counters(delta(None, None), delta(None, None), None, num_warm=3, missing_why="404")
    assert (signal.value, signal.supports, signal.why) == (None, None, "404")


def test_counters_that_went_backwards_tell_nothing() -> None:
    assert counters(delta(0, 600), delta(-900, -1200), None, num_warm=3).value is None
