"""The bug museum: each branch is wrong in its own way, and the right engine answers as one without a cache."""

from __future__ import annotations

import random

import pytest

from labs.kit.museum import EXHIBITS, museum_engine


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_right_engine_answers_as_one_without_a_cache(name: str) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        prompts = [chance.choices((1, 2), k=chance.randint(1, 6)) for _ in range(8)]
        engine, plain = (museum_engine(name, is_faulty=False, prefix_cache=cache) for cache in (True, False))
        for prompt in prompts:
            assert engine.answer(engine.ask(prompt, 2)) == plain.answer(plain.ask(prompt, 2))


@pytest.mark.parametrize("name", [name for name in EXHIBITS if name != "lost_sharing"])
def test_a_branch_answers_somebody_wrongly_or_computes_more(name: str) -> None:
    """Random traffic finds most faults sooner or later; the labs ask for a story that finds one for sure."""
    assert any(answers(name, seed, True) != answers(name, seed, False) for seed in range(200))


def answers(name: str, seed: int, is_faulty: bool) -> list[list[int]]:
    chance, engine = random.Random(seed), museum_engine(name, is_faulty=is_faulty, num_pages=14)
    requests = []
    for _ in range(10):
        prompt = chance.choice(([1, 2, 3, 4], [9, 9, 3, 4], [1, 2])) + chance.choices((5, 6), k=chance.randint(0, 2))
        request = engine.submit(prompt, chance.randint(1, 4))
        requests.append(request)
        if chance.random() < 0.6:
            engine.step(failing=[request] if chance.random() < 0.3 else ())
    engine.run()
    return [engine.answer(request) for request in requests if request.finish_reason == "length"]


def test_lost_sharing_changes_no_answer_and_computes_twice() -> None:
    for is_faulty, num_computed in ((False, 6), (True, 10)):
        engine = museum_engine("lost_sharing", is_faulty=is_faulty)
        twins = [engine.submit([1, 2, 3, 4, 5], 2) for _ in range(2)]
        engine.run()
        assert engine.answer(twins[0]) == engine.answer(twins[1]) == [14, 44]
        assert engine.counters.computed_prefill_tokens == num_computed


def test_a_name_that_is_not_in_the_museum_is_answered_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="the museum has no 'dodo': choose from unchained_key, exact_hit"):
        museum_engine("dodo")
