"""What an eviction policy must do, on pools that can be drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from labs.kit.exercises.drawing import labelled, pages
from labs.kit.exercises.on_engine import drawn, watched
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.exercises.search import for_all
from labs.kit.toy_engine import ToyEngine
from minivllm.protocols import PageUse

PARENTS: dict[str, str | None] = {"a": None, "b": "a", "c": "b", "d": "c", "x": None, "y": "x", "z": "a"}
NUM_SEEDS = 200


def stranded_examples(answer: Answer) -> None:
    for cached, expected in (({"b", "c"}, {"b", "c"}), ({"a", "c"}, {"c"}), ({"a", "b"}, set()), (set(), set())):
        require_stranded(answer, cached, expected)


def require_stranded(answer: Answer, cached: set[str], expected: set[str]) -> None:
    actual = answer.stranded(cached, PARENTS)
    if set(actual) != expected:
        chains = [("a b c d", ["a", "b", "c", "d"]), ("a z", ["a", "z"]), ("x y", ["x", "y"])]
        drawing = labelled(
            (name, pages([page if page in cached else " " for page in chain], 1)) for name, chain in chains
        )
        raise Wrong(
            f"of {sorted(cached)} other pages are stranded",
            expected=sorted(expected),
            actual=sorted(actual),
            drawing=drawing,
        )


def every_page_up_to_the_head_counts(answer: Answer) -> None:
    @for_all(cached=st.sets(st.sampled_from(sorted(PARENTS))))
    def as_a_walk_from_the_head_says(cached: set[str]) -> None:
        reached: set[str] = set()
        for page in ("a", "b", "c", "d", "x", "y", "z"):  # parents stand before their children
            parent = PARENTS[page]
            if page in cached and (parent is None or parent in reached):
                reached.add(page)
        require_stranded(answer, set(cached), cached - reached)


def request(policy: Any, page_ids: Sequence[int]) -> None:
    """The pages of one request are released, the deepest first."""
    for depth in reversed(range(len(page_ids))):
        policy.add(page_ids[depth], PageUse(depth, 0))


def require_order(policy: Any, expected: Sequence[int], told: str) -> None:
    victims: list[int] = []
    for number in range(len(expected)):
        if len(policy) != len(expected) - number:
            raise Wrong(f"after {told}: len() is wrong", expected=len(expected) - number, actual=len(policy))
        victims.append(policy.pop_victim())
    if victims != list(expected):
        raise Wrong(f"after {told}: pages go in another order", expected=list(expected), actual=victims)


def policy_examples(answer: Answer) -> None:
    policy = answer.MyEviction()
    request(policy, [1, 2, 3])
    require_order(policy, [3, 2, 1], "one request with the page table [ 1 2 3 ]")


def the_least_recently_used_request_goes_first(answer: Answer) -> None:
    policy = answer.MyEviction()
    request(policy, [1, 2])
    request(policy, [7, 4, 5])
    require_order(policy, [2, 1, 5, 4, 7], "a request with pages [ 1 2 ] and then one with [ 7 4 5 ]")


def a_page_that_is_used_again_counts_as_new(answer: Answer) -> None:
    policy = answer.MyEviction()
    request(policy, [1, 2])
    request(policy, [3])
    policy.remove(1)
    policy.remove(2)
    request(policy, [1, 2])
    require_order(policy, [3, 2, 1], "[ 1 2 ], then [ 3 ], then [ 1 2 ] again")


def a_page_in_use_is_no_candidate(answer: Answer) -> None:
    policy = answer.MyEviction()
    request(policy, [1, 2, 3])
    policy.remove(1)
    policy.remove(2)
    require_order(policy, [3], "[ 1 2 3 ], of which 1 and 2 are in use again")


def a_shared_head_outlives_its_tails(answer: Answer) -> None:
    policy = answer.MyEviction()
    request(policy, [1, 2])
    policy.remove(1)
    request(policy, [1, 9])
    require_order(policy, [2, 9, 1], "[ 1 2 ] and then [ 1 9 ], which share page 1")


def nothing_is_ever_stranded(answer: Answer) -> None:
    for seed in range(NUM_SEEDS):
        chance, engine = (
            random.Random(seed),
            ToyEngine(page_size=2, num_pages=6, components={"eviction": answer.MyEviction()}),
        )
        with watched(f"random walk {seed}", engine):
            for _ in range(25):
                prompt = [*chance.choice(([1, 1, 2, 2, 3, 3], [1, 1], [4, 4, 1])), chance.randint(1, 3)]
                engine.ask(prompt, chance.randint(1, 3))
                require_reachable(engine, seed)


def require_reachable(engine: ToyEngine, seed: int) -> None:
    index = engine.manager.index
    for page_id in index.page_ids():
        parent = index.parent_of(page_id)
        if parent is not None and parent not in index:
            raise Wrong(
                f"random walk {seed}: page {page_id} is stranded, its parent {parent} was evicted",
                drawing=drawn(engine),
                expected="the tail goes before the head",
                actual=f"page {parent} went before page {page_id}",
            )


def as_much_is_restored_as_with_ours(answer: Answer) -> None:
    mine, ours = restored_tokens({"eviction": answer.MyEviction()}), restored_tokens({})
    if mine < ours:
        raise Wrong(
            "on traffic with a hot prompt, less is restored",
            expected=f"{ours} restored tokens",
            actual=f"{mine} restored tokens",
            drawing="[ hot 8 tokens ] asked between prompts that come once, in a pool of 12 pages",
        )


def restored_tokens(components: dict[str, Any]) -> int:
    """One prompt that keeps coming back between others that come once: counts, so the same on every machine."""
    engine = ToyEngine(page_size=2, num_pages=12, components=components)
    with watched("on traffic", engine):
        for number in range(40):
            engine.ask([1] * 8 + [2 + number % 2], 1)
            engine.ask([100 + number] * 6, 1)
            engine.ask([200 + number] * 5, 1)
    return engine.counters.restored_tokens


PARTS = (
    Part(
        ("stranded",),
        (
            Check(
                "the README's examples",
                stranded_examples,
                "A page is stranded when *any* page before it is gone, not only the one directly before it.",
            ),
            Check(
                "every page up to the head counts",
                every_page_up_to_the_head_counts,
                "Only the parent was looked at: go on to the parent's parent, up to None.",
            ),
        ),
        "`minivllm.cache.audit` asks the same question of the engine's books after every test.",
    ),
    Part(
        ("MyEviction",),
        (
            Check(
                "the README's example",
                policy_examples,
                "The head went first, and everything behind it can no longer be found.",
            ),
            Check(
                "the least recently used request goes first",
                the_least_recently_used_request_goes_first,
                "Depth or page id decides before recency does, or the newest goes first.",
            ),
            Check(
                "a page that is used again counts as new",
                a_page_that_is_used_again_counts_as_new,
                "The first time a page was added was kept as its age.",
            ),
            Check(
                "a page in use is no candidate",
                a_page_in_use_is_no_candidate,
                "remove() must take the page out, wherever it stands.",
            ),
            Check(
                "a shared head outlives its tails",
                a_shared_head_outlives_its_tails,
                "A page that is added again must go behind everything that was added before.",
            ),
            Check(
                "nothing is ever stranded",
                nothing_is_ever_stranded,
                "Something else than the order of arrival decides in a state that the small scripts do not reach.",
            ),
            Check(
                "as much is restored as with ours",
                as_much_is_restored_as_with_ours,
                "Nothing is wrong with the answers, but useful pages go before useless ones.",
            ),
        ),
        "vLLM keeps a queue like yours and releases the blocks of a request from the tail, for the same reason.",
    ),
)
COMPONENTS = {"eviction": lambda answer, config: answer.MyEviction()}
