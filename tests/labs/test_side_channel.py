"""Rounds of the timing attack, scripted: what the clock says, what the counts say, and what luck would do."""

from __future__ import annotations

import pytest

from labs.kit.side_channel import Attack, Case, Round, attack, make_cases, probability_of_luck


class Shared:
    """A server that answers what it has seen in one second and everything else in three; sixteen tokens a prompt."""

    def __init__(self, *, is_salted: bool = False) -> None:
        self.is_salted = is_salted
        self.seen: set[tuple[str, str]] = set()
        self.hits = 0

    def ask(self, who: str, prompt: str) -> float:
        key = (who if self.is_salted else "", prompt)
        is_known = key in self.seen
        self.seen.add(key)
        self.hits += 16 * is_known
        return 1.0 if is_known else 3.0

    def attacked_with(self, cases: list[Case]) -> Attack:
        return attack(lambda text: self.ask("v", text), lambda text: self.ask("a", text), cases, lambda: self.hits)


def cases(count: int = 4) -> list[Case]:
    return make_cases(lambda number, secret: f"{number} {secret}", ["x", "y", "z"], range(count), seed=1)


def test_on_a_shared_cache_clock_and_counts_name_what_the_victim_sent() -> None:
    found = Shared().attacked_with(cases())
    assert found.num_right_by_clock == found.num_right_by_counts == 4
    assert found.luck == pytest.approx(1 / 81)
    assert "in 4 of 4 rounds" in found.said_by_clock() and "more than luck" in found.said_by_clock()
    assert found.said_by_counts() == (
        "Counts single out one prompt in 4 of 4 rounds, the victim's in 4. Probes restored 0 to 16 tokens."
    )


def test_with_a_salt_for_each_nothing_stands_out_and_the_clock_only_guesses() -> None:
    found = Shared(is_salted=True).attacked_with(cases())
    assert found.num_right_by_counts == 0 and "Luck explains it" in found.said_by_clock()
    assert "in 0 of 4 rounds" in found.said_by_counts() and "0 to 0 tokens" in found.said_by_counts()


def test_a_prompt_that_nobody_tries_singles_nothing_out_though_some_answer_comes_first() -> None:
    (case,) = cases(1)
    found = Shared().attacked_with([Case(case.candidates, "another")])
    assert found.rounds[0].secret is None and found.rounds[0].by_clock == 0
    assert found.num_right_by_clock == found.num_right_by_counts == 0
    assert found.right_s == [] and found.wrong_s == [3.0, 3.0, 3.0]


def test_two_probes_that_restored_as_much_single_nothing_out() -> None:
    assert Round(0, (1.0, 2.0, 3.0), (16, 16, 0)).by_counts is None
    assert Round(0, (1.0, 2.0, 3.0), (16, 32, 0)).by_counts == 1


def test_cases_differ_from_round_to_round_and_are_the_same_for_the_same_seed() -> None:
    assert cases() == cases()
    assert len({prompt for case in cases() for prompt in case.candidates}) == 12
    assert len({case.secret for case in cases(12)}) == 3, "a secret that never moves would be found by habit"


@pytest.mark.parametrize(("right", "rounds", "expected"), [(0, 4, 1.0), (4, 4, 1 / 81), (1, 1, 1 / 3), (1, 2, 5 / 9)])
def test_luck_is_the_binomial_tail(right: int, rounds: int, expected: float) -> None:
    assert probability_of_luck(right, rounds, 1 / 3) == pytest.approx(expected)


def test_an_attack_can_be_a_record() -> None:
    told = Shared().attacked_with(cases(1)).as_dict()
    assert told["num_right_by_counts"] == 1 and sorted(told["rounds"][0]["restored_tokens"]) == [0, 0, 16]
