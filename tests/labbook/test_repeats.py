"""When it is enough: the looks are planned, and stopping early makes no verdict likelier."""

from __future__ import annotations

import random

import pytest

from labbook.errors import UsageError
from labbook.repeats import LOOKS, repeats_for
from labbook.signals import clock
from labbook.statistics import TimedGroup


def test_a_number_is_one_look_at_95_percent() -> None:
    repeats = repeats_for(4)
    assert (repeats.looks, repeats.is_fixed, repeats.confidence) == ((4,), True, 0.95)
    assert repeats.rule.startswith("4 groups, decided beforehand")
    assert repeats_for(1).rule.startswith("1 group, decided beforehand")


def test_several_looks_share_the_five_percent() -> None:
    repeats = repeats_for(None)
    assert repeats.looks == LOOKS
    assert len(LOOKS) * (1 - repeats.confidence) == pytest.approx(0.05)
    assert "looked at after 1, 3, 6, 12 or 20" in repeats.rule and "99%" in repeats.rule


@pytest.mark.parametrize("number", [0, -1, 1001])
def test_a_number_without_sense_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match=f"repeats is {number}"):
        repeats_for(number)


def verdict_of_the_clock(ratio: float, noise: random.Random) -> str:
    """Look as a measurement does, on a machine that is at times twice as slow, and stalls every tenth request."""
    repeats, slow, groups = repeats_for(None), False, []

    def request() -> float:
        nonlocal slow
        slow = not slow if noise.random() < 0.15 else slow
        return noise.lognormvariate(0, 0.1) * (2 if slow else 1) * (3 if noise.random() < 0.1 else 1)

    for look in repeats.looks[1:]:
        while len(groups) < look:
            cold = request()
            warm = tuple(ratio * request() for _ in range(3))
            groups.append(TimedGroup(warm, (cold, request())))
        supports = clock(groups, confidence=repeats.confidence).supports
        if supports is not None:
            return supports
    return "undecided"


@pytest.mark.parametrize(("ratio", "right"), [(0.12, "reused"), (1.0, "not_reused")])
def test_looking_several_times_at_noise_gives_no_wrong_word(ratio: float, right: str) -> None:
    noise = random.Random(11)
    told = [verdict_of_the_clock(ratio, noise) for _ in range(40)]
    assert set(told) <= {right, "undecided"}
    assert told.count(right) >= 36
