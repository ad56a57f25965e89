"""Tests are tested: they must pass on the right engine and fail on the branch. Repairs must pass them, and ours."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.museum import EXHIBITS, MuseumEngine, museum_engine

MakeEngine = Callable[..., MuseumEngine]
NUM_WALKS = 30


def outcome_of(test: Callable[[MakeEngine], Any], make_engine: MakeEngine) -> Exception | None:
    """What the learner's test raises; NotImplementedError goes on its way."""
    try:
        test(make_engine)
    except NotImplementedError:
        raise
    except Exception as error:
        return error
    return None


def passes_on_the_right_engine(answer: Answer, name: str) -> None:
    error = outcome_of(getattr(answer, f"test_{name}"), functools.partial(museum_engine, name, is_faulty=False))
    if error is not None:
        raise Wrong(
            "your test fails on the right engine", expected="it ends quietly", actual=f"{type(error).__name__}: {error}"
        )


def fails_on_the_branch(answer: Answer, name: str) -> None:
    if outcome_of(getattr(answer, f"test_{name}"), functools.partial(museum_engine, name)) is None:
        raise Wrong(
            f"your test passes on the branch, where {EXHIBITS[name].about}",
            expected="an assert that fails",
            actual="it ends quietly",
        )


def repair_of(answer: Answer, name: str) -> Callable[..., Any]:
    """The learner's function. What it raises in the engine is told by the checks."""
    return getattr(answer, f"fix_{name}")  # type: ignore[no-any-return]


def the_repair_passes_your_test(answer: Answer, name: str) -> None:
    repaired = functools.partial(museum_engine, name, repair=repair_of(answer, name))
    error = outcome_of(getattr(answer, f"test_{name}"), repaired)
    if error is not None:
        raise Wrong(
            "your test fails on the engine that you repaired",
            expected="it ends quietly",
            actual=f"{type(error).__name__}: {error}",
        )


def the_repair_passes_ours(answer: Answer, name: str) -> None:
    repaired = functools.partial(museum_engine, name, repair=repair_of(answer, name))
    for told, story in STORIES[name]:
        right, mine = story(functools.partial(museum_engine, name, is_faulty=False)), story(repaired)
        if mine != right:
            raise Wrong(f"the repaired engine is not the right one: {told}", expected=right, actual=mine)


def as_much_is_reused(answer: Answer, name: str) -> None:
    """Random traffic: the answers are right, and no more tokens are computed than on the right engine."""
    repaired = functools.partial(museum_engine, name, repair=repair_of(answer, name))
    for seed in range(NUM_WALKS):
        right, mine = traffic(functools.partial(museum_engine, name, is_faulty=False), seed), traffic(repaired, seed)
        if mine[0] != right[0]:
            raise Wrong(f"random traffic {seed} is answered wrongly", expected=right[0], actual=mine[0])
        if mine[1] > right[1]:
            raise Wrong(
                f"random traffic {seed} is answered rightly, and more is computed",
                expected=f"{right[1]} tokens",
                actual=f"{mine[1]} tokens",
            )


def traffic(make_engine: MakeEngine, seed: int) -> tuple[list[list[int]], int]:
    chance, engine, requests = random.Random(seed), make_engine(num_pages=14), []
    for _ in range(12):
        prompt = chance.choice(([1, 2, 3, 4], [9, 9, 3, 4], [1, 2])) + chance.choices((5, 6), k=chance.randint(0, 3))
        requests.append(engine.submit(prompt, chance.randint(1, 3)))
        for _ in range(chance.randint(0, 2)):
            if engine.scheduler.has_requests:
                engine.step()
    engine.run()
    return [engine.answer(request) for request in requests], engine.counters.computed_prefill_tokens


def one_after_the_other(*prompts: list[int]) -> Callable[[MakeEngine], Any]:
    def story(make_engine: MakeEngine) -> Any:
        engine = make_engine()
        answers = [engine.answer(engine.ask(prompt, 2)) for prompt in prompts]
        return answers, f"{engine.counters.restored_tokens} restored tokens"

    return story


def with_a_failure(make_engine: MakeEngine) -> Any:
    engine = make_engine()
    failing = engine.submit([1, 2, 3, 4, 5], 2)
    engine.step(failing=[failing])
    return engine.answer(engine.ask([1, 2, 3, 4, 5], 2)), engine.answer(engine.ask([1, 2, 6], 2))


def with_twins(make_engine: MakeEngine) -> Any:
    engine = make_engine(num_pages=14)
    requests = [engine.submit([1, 2, 3, 4, 5], 6) for _ in range(2)]
    engine.step()
    requests.append(engine.submit([8] * 9, 2))
    engine.run()
    again = engine.ask([1, 2, 3, 4, 5], 6)
    return [engine.answer(request) for request in (*requests, again)], f"{engine.pages[2]} pages in use at the end"


def with_a_batch(make_engine: MakeEngine) -> Any:
    engine = make_engine()
    requests = [engine.submit(prompt, 2) for prompt in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 6, 7, 8])]
    engine.run()
    return [
        engine.answer(request) for request in requests
    ], f"{engine.counters.computed_prefill_tokens} computed tokens"


STORIES: dict[str, tuple[tuple[str, Callable[[MakeEngine], Any]], ...]] = {
    "unchained_key": (
        ("equal second pages", one_after_the_other([1, 2, 3, 4, 5], [9, 9, 3, 4, 5], [1, 2, 3, 4, 6])),
        ("equal third pages", one_after_the_other([1, 2, 3, 4, 5, 6, 7], [9, 9, 3, 4, 5, 6, 7])),
    ),
    "exact_hit": (
        ("a prompt of two pages", one_after_the_other([1, 2, 3, 4], [7, 7, 7], [1, 2, 3, 4])),
        ("a prompt of one page", one_after_the_other([1, 2], [7, 7, 7], [1, 2])),
        ("a prompt of two pages and a token", one_after_the_other([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])),
    ),
    "published_early": (("a step that fails", with_a_failure),),
    "freed_duplicate": (("twins, and a third request", with_twins),),
    "lost_position": (
        ("a warm request", one_after_the_other([1, 2, 3, 4, 5], [1, 2, 3, 4, 6])),
        ("a shorter prefix", one_after_the_other([1, 2, 3, 4, 5], [1, 2, 6, 7, 8])),
    ),
    "lost_sharing": (("a batch of three", with_a_batch),),
}

CAUSES = {
    "unchained_key": "The parent's key must go into the hash.",
    "exact_hit": "Keys and values alone give no logits: one token is left to compute, and not more than needed.",
    "published_early": "Everything that the failed step had published leaves the index, children before their parents.",
    "freed_duplicate": "The table is changed before the own page is released, and the found page is held first.",
    "lost_position": "Positions count from the beginning of the prompt, restored or not.",
    "lost_sharing": "A page that somebody else computes in this step is waited for; nobody waits for itself.",
}


def part(name: str) -> Part:
    def checking(check: Callable[[Answer, str], None]) -> Callable[[Answer], None]:
        return lambda answer: check(answer, name)

    return Part(
        (f"test_{name}", f"fix_{name}"),
        (
            Check(
                "passes on the right engine",
                checking(passes_on_the_right_engine),
                "The story breaks a rule of the engine, or the expected answer was worked out on the branch.",
            ),
            Check(
                "fails on the branch",
                checking(fails_on_the_branch),
                "In this story the fault cannot matter, or what is compared is the same with and without it.",
            ),
            Check("the repair passes your test", checking(the_repair_passes_your_test), CAUSES[name]),
            Check("the repair passes ours", checking(the_repair_passes_ours), CAUSES[name]),
            Check(
                "as much is reused",
                checking(as_much_is_reused),
                "Safe, but too careful: what could be restored is computed again.",
            ),
        ),
        f"In a real engine: {EXHIBITS[name].about}. See docs/known-faults.md.",
    )


PARTS = tuple(part(name) for name in EXHIBITS)
