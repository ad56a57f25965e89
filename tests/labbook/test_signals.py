"""What each signal supports, and what it cannot tell."""

import pytest

from labbook.signals import CounterDelta, cached_tokens, clock, counters


@pytest.mark.parametrize(
    ("cold_s", "warm_s", "control_s", "supports"),
    [
        (5.5, [0.8, 0.8, 0.9], 5.4, "reused"),
        (5.5, [0.8], None, "reused"),
        (5.5, [5.4, 5.6, 5.5], 5.5, "not_reused"),
        (5.5, [0.8, 0.9, 6.0], 5.4, "reused"),  # one straggler of three
        (5.5, [0.8, 6.0], 5.4, None),  # one of two is no straggler
        (3.3, [0.3, 0.3, 0.3], 0.3, None),  # a slow first request is no cache
        (0.6, [0.19, 0.2, 0.21], 0.2, None),  # a busy machine
        (0.27, [0.18, 0.18, 0.18], 0.19, "not_reused"),
        (1.0, [0.6, 0.6, 0.6], 1.0, None),
        (0.03, [0.03, 0.03], 0.03, None),  # too fast for a clock
        (0.03, [0.005, 0.005], 0.03, "reused"),  # fast, and yet six times faster
        (0.008, [0.001, 0.001], 0.008, None),  # a few milliseconds are no evidence
        (1.0, [0.78, 0.79, 0.8], 1.0, None),  # in between
        (0.05, [0.05, 0.05], 1.0, None),  # cold was as fast as warm, the control was not
    ],
)
def test_the_clock_supports_only_what_it_can_see(cold_s, warm_s, control_s, supports) -> None:
    assert clock(cold_s, warm_s, control_s).supports == supports


def test_equal_times_say_nothing_when_little_of_the_prompt_is_shared() -> None:
    signal = clock(5.0, [5.0, 5.0], 5.0, shared_share=0.2)
    assert signal.supports is None
    assert "only 20% of the prompt is shared" in signal.why


def test_the_value_of_the_clock_is_warm_over_cold() -> None:
    assert clock(4.0, [1.0, 2.0, 3.0], 5.0).value == 0.5


def test_no_warm_time_makes_the_clock_absent() -> None:
    signal = clock(4.0, [], None)
    assert (signal.value, signal.supports, signal.why) == (None, None, "no warm request succeeded")


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


def test_absent_counters_are_null_with_the_reason() -> None:
    signal = counters(delta(None, None), delta(None, None), None, num_warm=3, missing_why="404")
    assert (signal.value, signal.supports, signal.why) == (None, None, "404")


def test_counters_that_went_backwards_tell_nothing() -> None:
    assert counters(delta(0, 600), delta(-900, -1200), None, num_warm=3).value is None
