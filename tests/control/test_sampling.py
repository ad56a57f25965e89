"""From logits to a token: greedy, drawn, cut at top_p, and the log probabilities that are shown."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from minivllm.config import SamplingParams
from minivllm.sampling import Sampler, token_logprobs

LOGITS = np.log(np.array([0.5, 0.25, 0.15, 0.1], np.float32))


def draws(params: SamplingParams, num_draws: int, logits: np.ndarray = LOGITS) -> list[int]:
    sampler = Sampler(params)
    return [sampler.sample(logits) for _ in range(num_draws)]


def chi_square(drawn: list[int], probabilities: list[float]) -> float:
    counts = np.bincount(drawn, minlength=len(probabilities))
    expected = np.array(probabilities) * len(drawn)
    return float((((counts - expected) ** 2) / expected).sum())


def test_greedy_takes_the_largest_and_the_lowest_id_of_a_tie() -> None:
    greedy = SamplingParams(temperature=0)
    assert draws(greedy, 1, np.array([1.0, 3.0, 2.0], np.float32)) == [1]
    assert draws(greedy, 1, np.array([1.0, 3.0, 3.0, 3.0], np.float32)) == [1]
    assert draws(greedy, 1, np.zeros(5, np.float32)) == [0]


@pytest.mark.parametrize("seed", [0, 1, -1, -(2**63), 2**64 - 2, 2**70])
def test_the_same_seed_draws_the_same_tokens(seed: int) -> None:
    params = SamplingParams(seed=seed)
    assert draws(params, 50) == draws(params, 50)


def test_other_seeds_draw_other_tokens() -> None:
    assert len({tuple(draws(SamplingParams(seed=seed), 50)) for seed in range(10)}) == 10


def test_without_a_seed_two_requests_differ() -> None:
    assert draws(SamplingParams(), 200) != draws(SamplingParams(), 200)


@pytest.mark.parametrize(
    ("temperature", "top_p", "probabilities"),
    [
        (1.0, 1.0, [0.5, 0.25, 0.15, 0.1]),
        (2.0, 1.0, [p**0.5 / sum(q**0.5 for q in (0.5, 0.25, 0.15, 0.1)) for p in (0.5, 0.25, 0.15, 0.1)]),
        (0.5, 1.0, [p**2 / sum(q**2 for q in (0.5, 0.25, 0.15, 0.1)) for p in (0.5, 0.25, 0.15, 0.1)]),
        (1.0, 0.8, [0.5 / 0.9, 0.25 / 0.9, 0.15 / 0.9]),
        (1.0, 0.7, [0.5 / 0.75, 0.25 / 0.75]),
    ],
)
def test_tokens_are_drawn_as_often_as_their_probability_says(
    temperature: float, top_p: float, probabilities: list[float]
) -> None:
    drawn = draws(SamplingParams(temperature=temperature, top_p=top_p, seed=11), 20_000)
    assert max(drawn) < len(probabilities), "nothing outside of top_p"
    assert chi_square(drawn, probabilities) < 16.27  # 99.9 % quantile for three degrees of freedom


def test_the_check_of_the_distribution_would_notice_a_wrong_one() -> None:
    drawn = draws(SamplingParams(seed=11), 20_000)
    assert chi_square(drawn, [0.48, 0.26, 0.16, 0.1]) > 16.27


@pytest.mark.parametrize("top_p", [0.5, 0.49, 0.1, 1e-12])
def test_the_most_probable_token_is_kept_however_small_top_p_is(top_p: float) -> None:
    assert set(draws(SamplingParams(top_p=top_p, seed=1), 200)) == {0}


def test_top_p_just_above_a_sum_keeps_the_token_that_crosses_it() -> None:
    assert set(draws(SamplingParams(top_p=0.5001, seed=1), 400)) == {0, 1}


def test_of_equal_tokens_top_p_keeps_the_lowest_ids() -> None:
    assert set(draws(SamplingParams(top_p=0.5, seed=1), 400, np.zeros(4, np.float32))) == {0, 1}


def test_a_token_without_probability_is_never_drawn() -> None:
    logits = np.array([-1e30, 0.0, 0.0, -1e30], np.float32)
    assert set(draws(SamplingParams(seed=3), 500, logits)) == {1, 2}


@pytest.mark.parametrize(("uniform", "right"), [(0.0, 1), (0.49, 1), (0.5, 2), (1 - 2**-53, 2)])
def test_the_ends_of_the_uniform_draw_fall_on_tokens_that_have_probability(uniform: float, right: int) -> None:
    class Fixed:
        def random(self) -> float:
            return uniform

    sampler = Sampler(SamplingParams())
    sampler._generator = Fixed()  # type: ignore[assignment]
    assert sampler.sample(np.array([-1e30, 0.0, 0.0, -1e30], np.float32)) == right


@pytest.mark.parametrize("temperature", [1e-3, 1e-40, 1e-308, 5e-324])
def test_a_tiny_temperature_is_nearly_greedy(temperature: float) -> None:
    logits = np.array([-30.0, 12.0, 20.0, 19.0], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(draws(SamplingParams(temperature=temperature, seed=1), 50, logits)) == {2}


def test_large_logits_do_not_overflow() -> None:
    logits = np.array([3e38, 3e38, -3e38], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(draws(SamplingParams(seed=1), 200, logits)) == {0, 1}


def test_log_probabilities_are_natural_and_do_not_overflow() -> None:
    assert token_logprobs(np.array([1000.0, 1000.0], np.float32), 0, 0).logprob == pytest.approx(math.log(0.5))
    assert token_logprobs(np.array([0.0, math.log(3)], np.float32), 1, 0).logprob == pytest.approx(math.log(0.75))


def test_the_alternatives_are_the_best_ones_best_first_and_ties_by_id() -> None:
    shown = token_logprobs(np.array([0.0, 2.0, 1.0, 2.0], np.float32), token_id=0, num_alternatives=3)
    assert [token_id for token_id, _ in shown.top] == [1, 3, 2]
    total = 1 + 2 * math.exp(2) + math.exp(1)
    assert shown.logprob == pytest.approx(-math.log(total))
    assert shown.top[0][1] == pytest.approx(2 - math.log(total))


def test_no_alternatives_asked_for_still_shows_the_token_itself() -> None:
    shown = token_logprobs(np.zeros(4, np.float32), token_id=2, num_alternatives=0)
    assert (shown.token_id, shown.top) == (2, ())
    assert shown.logprob == pytest.approx(math.log(0.25))


@pytest.mark.parametrize("count", [0, 1, 3, 50, 100, 200])
def test_the_best_alternatives_are_those_of_a_full_sort(count: int) -> None:
    logits = np.random.default_rng(count).integers(0, 20, 100).astype(np.float32)  # with many ties
    expected = np.argsort(-logits, kind="stable")[:count]
    assert [token_id for token_id, _ in token_logprobs(logits, 0, count).top] == expected.tolist()
