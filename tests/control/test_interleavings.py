"""Every interleaving of three requests over a small pool: steps, failures, aborts, with the real scheduler and books.

Breadth first over states; a state is replayed from the actions that lead to it. Every state passes the audit, every
read finds its own prefix (labs/kit/toy_engine.py), nobody waits while nobody runs, and every survivor gets the
oracle's answer.
"""

from __future__ import annotations

from collections import deque

import pytest

from labs.kit.toy_engine import T, ToyEngine, oracle
from minivllm.config import CHOICES
from minivllm.request import Request

Action = tuple[str, int]
MAX_TOKENS = 2
PROMPTS = (T(7), T(7), [*T(4), 90, 91, 92])


class Replay:
    """One path: three requests, two of them equal and one that shares a page, in a pool that holds hardly two."""

    def __init__(self, single_flight: str, publication: str, admission: str, actions: tuple[Action, ...]) -> None:
        self.toy = ToyEngine(
            num_pages=5 if admission == "optimistic" else 7,
            page_size=2,
            max_batched_tokens=3,
            single_flight=single_flight,
            publication=publication,
            admission=admission,
        )
        self.requests: list[Request] = []
        for action in actions:
            self.act(*action)

    def act(self, name: str, number: int) -> None:
        if name == "arrive":
            self.requests.append(self.toy.submit(PROMPTS[number], MAX_TOKENS))
        elif name == "abort":
            self.toy.abort(self.requests[number])
        elif name == "fail":
            self.toy.step(failing=[self.requests[number]])
        else:
            self.toy.step()

    def possible(self) -> list[Action]:
        actions = [("arrive", len(self.requests))] if len(self.requests) < len(PROMPTS) else []
        if self.toy.requests:
            actions.append(("step", 0))
        for number, request in enumerate(self.requests):
            if request in self.toy.requests:
                actions += [("abort", number), ("fail", number)]
        return actions

    def state(self) -> object:
        """What the future depends on."""
        manager, scheduler = self.toy.manager, self.toy.scheduler
        each = [
            (
                request.status,
                request.num_computed_tokens,
                len(request.token_ids),
                tuple(request.page_table),
                request.num_published_pages,
                request.num_prefill_tokens,
                request.num_seen_tokens,
                request.request_id in scheduler.grounded,
            )
            for request in self.requests
        ]
        order = tuple(request.request_id for request in (*scheduler.waiting, *scheduler.running))
        return (
            tuple(each), order, tuple(manager.pool.free_page_ids()), tuple(manager.cached_page_ids),
            tuple((page, manager.index.parent_of(page)) for page in manager.index.page_ids()),
        )  # fmt: skip

    def finish(self) -> None:
        survivors = list(self.toy.requests)
        self.toy.run()
        for request in survivors:
            assert request.output_token_ids == oracle(request.prompt_token_ids, MAX_TOKENS)
        assert self.toy.pages[2] == 0


@pytest.mark.parametrize("admission", ["reserve", "optimistic"])
@pytest.mark.parametrize("publication", CHOICES["publication"])
@pytest.mark.parametrize("single_flight", CHOICES["single_flight"])
def test_every_interleaving_keeps_the_books_and_ends_with_the_right_answers(
    single_flight: str, publication: str, admission: str
) -> None:
    seen: set[object] = set()
    frontier: deque[tuple[Action, ...]] = deque([()])
    while frontier:
        actions = frontier.popleft()
        replay = Replay(single_flight, publication, admission, actions)
        state = replay.state()
        if state in seen:
            continue
        seen.add(state)
        frontier.extend((*actions, action) for action in replay.possible())
        replay.finish()
    print(f"{single_flight}, {publication}, {admission}: {len(seen)} states visited")
    assert len(seen) > 300
