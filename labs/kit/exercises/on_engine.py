"""What a learner wrote, run inside the engine: the books are audited, and every page that is read says whose it is."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from labs.kit.exercises.drawing import labelled, pages, pool
from labs.kit.exercises.part import Wrong
from labs.kit.toy_engine import ToyEngine, oracle
from minivllm.cache.audit import view_pages

Make = Callable[[], Mapping[str, Any]]
"""New components for one engine; nothing is kept from one engine to the next."""


@contextlib.contextmanager
def watched(what: str, engine: ToyEngine | None = None) -> Iterator[None]:
    """What the audit or a reader of a page finds is the learner's to see: `Wrong`, with the pool drawn."""
    try:
        yield
    except Wrong:
        raise
    except AssertionError as error:
        raise Wrong(f"{what}: {error}", drawing="" if engine is None else drawn(engine)) from None


def drawn(engine: ToyEngine) -> str:
    """Every page with its state and owners, and the page table of every request."""
    views = view_pages(engine.manager, engine.requests)
    states = [" ".join(view.owners) if view.owners else view.state for view in views]
    tables = [(request.request_id, f"page table {request.page_table}") for request in engine.requests]
    return labelled([("pool", pool(states)), *tables])


def random_walks(make: Make, *, seeds: range, num_steps: int = 40, page_size: int = 2, num_pages: int = 6) -> None:
    """Requests arrive, run, fail and are aborted at random on the real scheduler and books; every answer is checked.

    Raises Wrong for the first seed that goes wrong, at the first step at which it does.
    """
    for seed in seeds:
        chance = random.Random(seed)
        engine = ToyEngine(page_size=page_size, num_pages=num_pages, max_batched_tokens=6, components=dict(make()))
        with watched(f"random walk {seed}", engine):
            _walk(engine, chance, num_steps)


def _walk(engine: ToyEngine, chance: random.Random, num_steps: int) -> None:
    page_size = engine.manager.page_size
    submitted = []
    for _ in range(num_steps):
        move = chance.random()
        if move < 0.35 and len(engine.requests) < 4:
            prompt = chance.choice(([1, 1, 2, 2], [1, 1], [2, 2, 1, 1, 3])) + chance.choices(
                (1, 2, 3), k=chance.randint(1, 3)
            )
            submitted.append(engine.submit(prompt, chance.randint(1, 2), salt=chance.choice((None, None, "a"))))
        elif move < 0.42 and engine.requests:
            engine.abort(chance.choice(engine.requests))
        elif engine.scheduler.has_requests:
            engine.step()
    engine.run()
    for request in submitted:
        if request.finish_reason == "length":
            expected = oracle(request.prompt_token_ids, request.params.max_tokens)
            answer = request.token_ids[request.num_prompt_tokens :]
            told = pages(request.prompt_token_ids, page_size)
            assert answer == expected, f"{request.request_id} {told} is answered {answer}, without a cache {expected}"
