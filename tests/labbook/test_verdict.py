"""One word from three signals."""

import itertools

import pytest

from labbook.signals import CounterDelta, Signal
from labbook.verdict import (
    WORDS,
    below_one_page,
    contamination_by_loss,
    contamination_by_tokens,
    contamination_by_traffic,
    contamination_everywhere,
    decide,
)

YES, NO, UNSURE = "reused", "not_reused", None


def signals(clock, cached, counted) -> dict[str, Signal]:
    told = zip(("clock", "cached_tokens", "counters"), (clock, cached, counted), strict=True)
    return {name: Signal(1.0, "x", supports, f"what {name} says") for name, supports in told}


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ((YES, YES, YES), "reused"),
        ((NO, NO, NO), "not_reused"),
        ((YES, UNSURE, UNSURE), "reused"),
        ((NO, UNSURE, UNSURE), "not_reused"),
        ((UNSURE, YES, YES), "reused"),
        ((UNSURE, UNSURE, UNSURE), "inconclusive"),
        ((YES, YES, NO), "reused"),  # the counters lie, and the clock is a witness
        ((YES, NO, YES), "reused"),
        ((NO, YES, YES), "inconclusive"),  # numbers say reused and no time was saved
        ((YES, NO, NO), "inconclusive"),
        ((YES, UNSURE, NO), "inconclusive"),
        ((UNSURE, YES, NO), "inconclusive"),
    ],
)
def test_signals_make_one_word(told, word: str) -> None:
    assert decide(signals(*told)).word == word


@pytest.mark.parametrize("told", list(itertools.product([YES, NO, UNSURE], repeat=3)))
def test_disagreement_is_always_told_with_every_signal_that_takes_part(told) -> None:
    verdict = decide(signals(*told))
    assert verdict.word in WORDS
    for name, supports in zip(("clock", "cached_tokens", "counters"), told, strict=True):
        if supports is not None:
            assert f"what {name} says" in verdict.reason
    if {YES, NO} <= set(told):
        assert "disagree" in verdict.reason or "against" in verdict.reason


def test_contamination_goes_before_every_signal() -> None:
    verdict = decide(signals(YES, YES, YES), contamination="the server restarted")
    assert (verdict.word, verdict.reason) == ("contaminated", "the server restarted")


def test_a_prefix_below_one_page_is_inconclusive_unless_something_was_reused() -> None:
    assert decide(signals(UNSURE, NO, NO), too_short="below one page").word == "inconclusive"
    assert decide(signals(UNSURE, YES, YES), too_short="below one page").word == "reused"


@pytest.mark.parametrize(
    ("cold", "control", "contaminated"),
    [
        (0, 0, False),
        (16, 16, False),
        (3, 2, False),
        (592, 16, True),
        (32, 16, True),
        (592, 592, False),
        (None, 0, False),
        (24, None, False),
        (592, None, True),
    ],
)
def test_a_cold_request_that_reuses_more_than_a_changed_prefix_was_warm(cold, control, contaminated) -> None:
    assert (contamination_by_tokens(cold, control, "usage") is not None) is contaminated


def test_a_nonce_that_makes_nothing_cold_is_contamination() -> None:
    assert contamination_everywhere(600, 600, 616) is not None
    assert contamination_everywhere(16, 16, 40) is None
    assert contamination_everywhere(None, None, 40) is None


@pytest.mark.parametrize(
    ("steps", "sent", "said"),
    [
        ([(0, 600), (590, 600)], 1200, None),
        ([(0, 600), (590, 601)], 1200, None),
        ([(0, 600), (590, 700)], 1200, "other traffic"),
        ([(0, 600), (-590, -600)], 1200, "restarted"),
        ([(0, 0), (0, 0)], 1200, None),  # cache off: nothing is queried
        ([(0, 600), (590, None)], 1200, None),  # not known
        ([(0, 600), (590, 900)], None, None),
        ([], 1200, None),
    ],
)
def test_other_traffic_and_restarts_are_seen_in_the_counters(steps, sent, said) -> None:
    found = contamination_by_traffic([CounterDelta(*step) for step in steps], sent, 2)
    assert found is None if said is None else found is not None and said in found


@pytest.mark.parametrize(
    ("shared", "page", "below"),
    [
        (15, 16, True),
        (16, 16, False),
        (31, 16, False),
        (100, 128, True),
        (128, 128, False),
        (15, None, True),
        (None, 16, False),
    ],
)
def test_a_shared_prefix_below_one_page_is_told_in_words(shared, page, below) -> None:
    said = below_one_page(shared, page, is_estimate=False)
    assert (said is not None) is below
    if below:
        assert said.startswith(f"the shared prefix of {shared} tokens is below one page of {page or 16}")


@pytest.mark.parametrize(
    ("gained", "sent", "is_contaminated"),
    [
        ([700, 700, 700, 700], [700, 700, 700, 700], False),
        ([700, 0, 700, 50], [700, 700, 700, 700], True),  # restarted, and climbed back past its old value
        ([0, 0, 0, 0], [700, 700, 700, 700], False),  # the cache is off
        ([350, 350, 350, 350], [700, 700, 700, 700], False),  # it counts something else
        ([0, 700, 700, 700], [700, 700, 700, 700], False),  # it publishes late
        ([692, 693, 692, 691], [700, 700, 700, 700], False),  # it counts no template
        ([700, None, 700, 0], [700, 700, None, 700], False),  # too little is known
    ],
)
def test_counters_that_lose_more_than_one_request_began_anew(gained, sent, is_contaminated) -> None:
    told = contamination_by_loss([CounterDelta(0, queries) for queries in gained], sent)
    assert (told is not None) == is_contaminated
    assert told is None or "1350 of the tokens that were sent: the server restarted" in told
