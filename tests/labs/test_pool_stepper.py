from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from labs.kit.pool_stepper import PoolStepper, Snapshot
from labs.kit.small_engine import small_llm
from minivllm import LLM
from minivllm.models.loading import LoadedModel, load_model
from minivllm.request import RequestError

COUNTING = list(range(10, 20))


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model("tiny")


class Pool:
    """A stepper over 12 pages of 4 tokens, and the engine that it made."""

    def __init__(self, loaded: LoadedModel, **settings: object) -> None:
        made: list[LLM] = []

        def make() -> LLM:
            made.append(small_llm(loaded, max_batched_tokens=8, **settings))
            return made[0]

        self.stepper = PoolStepper(make)
        self.llm = made[0]


@pytest.fixture
def pool(loaded: LoadedModel) -> Iterator[Pool]:
    pool = Pool(loaded)
    yield pool
    pool.stepper.close()


def counts(snapshot: Snapshot) -> dict[str, int]:
    return Counter(f"pages_{page.view.state}" for page in snapshot.pages)


def test_every_snapshot_says_what_the_engine_counts(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=4)
    pool.stepper.arrive([*COUNTING[:8], 50, 51, 52], max_tokens=6)
    while not pool.stepper.is_idle:
        seen, stats = counts(pool.stepper.step()), pool.llm.stats()
        assert all(seen.get(name, 0) == stats[name] for name in ("pages_free", "pages_cached", "pages_active"))
        assert {name: list(table) for name, table in pool.stepper.last.page_tables.items()} == {
            request.request_id: request.page_table for request in pool.llm.engine.requests if request.page_table
        }


def test_a_page_is_filled_token_by_token_and_found_when_it_is_full(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=4)
    filled = [[(len(page.tokens), page.view.indexed) for page in pool.stepper.step().pages[:3]] for _ in range(4)]
    assert filled == [
        [(4, True), (4, True), (0, False)],
        [(4, True), (4, True), (2, False)],
        [(4, True), (4, True), (3, False)],
        [(4, True), (4, True), (4, True)],
    ]


def test_a_shared_page_has_two_owners_and_stays_when_one_of_them_ends(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=3)
    pool.stepper.step()
    pool.stepper.step()
    pool.stepper.arrive([*COUNTING[:8], 50, 51, 52], max_tokens=6)
    page = pool.stepper.step().pages[0]
    assert (page.view.owners, page.view.references) == (("A", "B"), 2)
    while "A" in pool.stepper.last.page_tables:
        pool.stepper.step()
    page = pool.stepper.last.pages[0]
    assert (page.view.owners, page.view.references, page.view.state) == (("B",), 1, "active")


def test_who_is_said_to_be_evicted_was_next_in_line(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=4)
    pool.stepper.run()
    pool.stepper.arrive(range(100, 120), max_tokens=4)
    pool.stepper.run()
    pool.stepper.arrive(range(200, 218), max_tokens=4)
    num_steps_with_victims = 0
    while not pool.stepper.is_idle:
        in_line = [page.view.page_id for page in pool.stepper.last.in_state("cached")]
        evicted_before = pool.llm.stats()["evicted_tokens"]
        said = pool.stepper.step().said
        num_victims = (pool.llm.stats()["evicted_tokens"] - evicted_before) // 4
        if num_victims:
            num_steps_with_victims += 1
            ids = " ".join(map(str, sorted(in_line[:num_victims])))
            assert f"Page {ids} is evicted." in said or f"Pages {ids} are evicted." in said
        else:
            assert "evicted" not in said
    assert num_steps_with_victims


def test_a_step_is_told_in_a_sentence(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=3)
    told = [pool.stepper.last.title, *(pool.stepper.step().title for _ in range(4))]
    assert told == [
        "Step 0. The pool is empty.",
        "Step 1. A arrives. A computes prompt tokens 1 to 8.",
        "Step 2. A computes prompt tokens 9 to 10.",
        "Step 3. A computes answer token 1.",
        "Step 4. A computes answer token 2 and ends.",
    ]
    pool.stepper.arrive(COUNTING, max_tokens=1)
    assert pool.stepper.step().said == "B arrives. B restores 8 tokens and computes prompt tokens 9 to 10 and ends."


def test_an_idle_engine_keeps_its_last_snapshot(pool: Pool) -> None:
    assert pool.stepper.step() is pool.stepper.last
    assert [snapshot.step for snapshot in pool.stepper.snapshots] == [0]


def test_the_text_names_every_page_once(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=4)
    text = pool.stepper.step().as_text()
    title, heading, *rows, table, free = text.splitlines()
    assert title.startswith("Step 1. A arrives.") and heading.split()[:2] == ["page", "state"]
    assert [row.split()[:4] for row in rows] == [["0", "active", "1", "A"], ["1", "active", "1", "A"]]
    assert table == "page table of A: 0 1"
    assert free.endswith(": 2 3 4 5 6 7 8 9 10 11")


def test_a_policy_that_tells_no_order_has_pages_without_a_turn(loaded: LoadedModel) -> None:
    pool = Pool(loaded, eviction="lfu")
    pool.stepper.arrive(COUNTING, max_tokens=1)
    cached = pool.stepper.run().in_state("cached")
    assert cached and all(page.turn is None for page in cached)
    pool.stepper.close()


def test_a_request_that_could_never_run_is_refused_and_takes_no_name(pool: Pool) -> None:
    with pytest.raises(RequestError):
        pool.stepper.arrive(range(5, 105), max_tokens=1)
    assert pool.stepper.arrive(COUNTING, max_tokens=1) == "A"


def test_it_can_be_stepped_from_any_thread(pool: Pool) -> None:
    pool.stepper.arrive(COUNTING, max_tokens=4)
    pool.stepper.step()
    thread = threading.Thread(target=pool.stepper.run)
    thread.start()
    thread.join()
    assert pool.stepper.is_idle and pool.stepper.last.step == 5


def test_a_program_that_leaves_it_open_ends_in_peace() -> None:
    program = (
        "from labs.kit.pool_stepper import PoolStepper\n"
        "from labs.kit.small_engine import small_llm\n"
        "from minivllm.models.loading import load_model\n"
        "pool = PoolStepper(lambda: small_llm(load_model('tiny')))\n"
        "pool.arrive([5, 6, 7], max_tokens=2)\n"
        "print(pool.run().title)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "Step 2. A computes answer token 1 and ends.\n"), done.stderr
