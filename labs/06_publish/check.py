"""When pages may be found: by the table, for every small state, and with aborts and failures at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from labs.kit.exercises.drawing import labelled, pages
from labs.kit.exercises.on_engine import watched
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.exercises.search import for_all
from labs.kit.toy_engine import ToyEngine, oracle
from minivllm.protocols import Moment
from minivllm.request import Request

POLICIES = ("OnFinish", "AfterPrefill", "Incremental")
NUM_PROMPT = 6
TABLE = (
    (Moment.SCHEDULED, 4, (0, 0, 0)),
    (Moment.COMPUTED, 4, (0, 0, 4)),
    (Moment.COMPUTED, 6, (0, 6, 6)),
    (Moment.COMPUTED, 7, (0, 6, 7)),
    (Moment.ENDED, 7, (7, 7, 7)),
)
PROMPT = [1, 2, 3, 4, 5, 6]


def ask(answer: Answer, policy: str, moment: Moment, num_computed: int, num_prompt: int) -> int:
    return int(getattr(answer, policy)().findable_tokens(moment, num_computed, num_prompt))


def the_table(answer: Answer) -> None:
    for moment, num_computed, row in TABLE:
        for policy, expected in zip(POLICIES, row, strict=True):
            require(answer, policy, moment, num_computed, NUM_PROMPT, expected)


def require(answer: Answer, policy: str, moment: Moment, num_computed: int, num_prompt: int, expected: int) -> None:
    actual = ask(answer, policy, moment, num_computed, num_prompt)
    if actual != expected:
        call = f"{policy} at {moment.name} with {num_computed} of {num_prompt} prompt tokens computed"
        drawing = labelled(
            [("prompt", pages([f"t{n}" for n in range(num_prompt)], 2)), ("computed", f"{num_computed} tokens")]
        )
        raise Wrong(call, expected=f"{expected} tokens may be found", actual=f"{actual} tokens", drawing=drawing)


def only_what_is_computed(answer: Answer) -> None:
    for policy in POLICIES:
        for moment in Moment:
            for num_computed in range(9):
                for num_prompt in range(1, 9):
                    found = ask(answer, policy, moment, num_computed, num_prompt)
                    most = 0 if moment is Moment.SCHEDULED else num_computed
                    if not 0 <= found <= most:
                        raise Wrong(
                            f"{policy} at {moment.name} with {num_computed} tokens computed lets others find too much",
                            expected=f"at most {most} tokens",
                            actual=f"{found} tokens",
                        )


def an_aborted_request_leaves_what_it_computed(answer: Answer) -> None:
    for policy in POLICIES:
        for num_computed in (2, 4, NUM_PROMPT):
            require(answer, policy, Moment.ENDED, num_computed, NUM_PROMPT, num_computed)


def what_was_found_stays_found(answer: Answer) -> None:
    for policy in POLICIES:
        for num_prompt in range(1, 7):
            seen = 0
            for num_computed in range(1, 10):
                found = ask(answer, policy, Moment.COMPUTED, num_computed, num_prompt)
                if found < seen:
                    raise Wrong(
                        f"{policy} takes back what could be found, at {num_computed} computed tokens of {num_prompt}",
                        expected=f"at least {seen} tokens",
                        actual=f"{found} tokens",
                    )
                seen = found


def each_as_its_name_says(answer: Answer) -> None:
    """Every state of a small request: the three differ in what they wait for, and in nothing else."""
    for num_prompt in range(1, 7):
        for num_computed in range(1, 9):
            prompt_done = num_computed >= num_prompt
            require(answer, "OnFinish", Moment.COMPUTED, num_computed, num_prompt, 0)
            require(answer, "AfterPrefill", Moment.COMPUTED, num_computed, num_prompt, num_prompt if prompt_done else 0)
            require(answer, "Incremental", Moment.COMPUTED, num_computed, num_prompt, num_computed)


def aborts_and_failures_at_every_step(answer: Answer) -> None:
    for policy in POLICIES:
        for name, stop in (("aborted", abort), ("failed", fail)):
            for leader_steps in range(6):
                for follower_step in range(5):
                    engine = ToyEngine(
                        page_size=2,
                        num_pages=10,
                        max_batched_tokens=2,
                        components={"publication": getattr(answer, policy)()},
                    )
                    told = f"{policy}, leader {name} in step {leader_steps}, follower comes in step {follower_step}"
                    with watched(told, engine):
                        two_requests(engine, leader_steps, follower_step, stop)


def two_requests(
    engine: ToyEngine, leader_steps: int, follower_step: int, stop: Callable[[ToyEngine, Request], None]
) -> None:
    leader, follower = engine.submit(PROMPT, 2), None
    for number in range(30):
        if number == follower_step:
            follower = engine.submit(PROMPT, 2)
        if number == leader_steps and leader in engine.requests:
            stop(engine, leader)
        elif engine.scheduler.has_requests:
            engine.step()
    assert follower is not None and follower.token_ids[len(PROMPT) :] == oracle(PROMPT, 2), (
        "the follower gets another answer"
    )


def abort(engine: ToyEngine, leader: Request) -> None:
    engine.abort(leader)


def fail(engine: ToyEngine, leader: Request) -> None:
    engine.step(failing=[leader])


def withdraw_examples(answer: Answer) -> None:
    require_withdrawn(answer, {1}, {0: None, 1: 0, 2: 1})
    require_withdrawn(answer, set(), {0: None, 1: 0})


def require_withdrawn(answer: Answer, failed: set[int], parent_of: dict[int, int | None]) -> None:
    lost = set(failed)
    while more := {page for page, parent in parent_of.items() if parent in lost} - lost:
        lost |= more
    order = list(answer.withdraw(frozenset(failed), dict(parent_of)))
    drawing = labelled(
        [
            ("chains", ", ".join(f"{page} -> {parent}" for page, parent in parent_of.items())),
            ("failed", str(sorted(failed))),
        ]
    )
    if sorted(order) != sorted(lost):
        raise Wrong("other pages are withdrawn", expected=sorted(lost), actual=order, drawing=drawing)
    for place, page in enumerate(order):
        early = [other for other in order[place:] if parent_of[other] == page]
        if early:
            raise Wrong(
                f"page {page} is removed before page {early[0]}, which is chained to it",
                expected="children first",
                actual=order,
                drawing=drawing,
            )


def everything_behind_a_failed_page_goes(answer: Answer) -> None:
    @for_all(parents=st.lists(st.integers(0, 5), min_size=1, max_size=6), failed=st.sets(st.integers(0, 5), max_size=2))
    def as_the_chains_say(parents: list[int], failed: set[int]) -> None:
        parent_of = chains(parents, range(len(parents)))
        require_withdrawn(answer, {page for page in failed if page in parent_of}, parent_of)


def chains(parents: Sequence[int], names: Sequence[int]) -> dict[int, int | None]:
    """Pages by name, each with a parent that came before it; any list of numbers gives such chains."""
    behind = [number % (place + 1) - 1 for place, number in enumerate(parents)]
    return {names[place]: None if parent < 0 else names[parent] for place, parent in enumerate(behind)}


def the_order_does_not_hang_on_page_ids(answer: Answer) -> None:
    @for_all(
        parents=st.lists(st.integers(0, 4), min_size=2, max_size=5),
        names=st.permutations(range(5)),
        failed=st.integers(0, 4),
    )
    def renamed(parents: list[int], names: list[int], failed: int) -> None:
        shuffled = dict(sorted(chains(parents, names).items()))
        require_withdrawn(answer, {names[failed]} & set(shuffled), shuffled)


PARTS: tuple[Any, ...] = (
    Part(
        POLICIES,
        (
            Check(
                "the README's table",
                the_table,
                "Go through the table row by row: which moment is it, and is the prompt complete?",
            ),
            Check(
                "only what is computed",
                only_what_is_computed,
                "At SCHEDULED nothing is computed, and never more can be found than there is.",
            ),
            Check(
                "an aborted request leaves what it computed",
                an_aborted_request_leaves_what_it_computed,
                "ENDED was taken for 'finished': what an aborted request computed is good.",
            ),
            Check(
                "what was found stays found",
                what_was_found_stays_found,
                "The answer shrinks while the request goes on, for example after the prompt.",
            ),
            Check(
                "each as its name says",
                each_as_its_name_says,
                "A border case: the prompt is complete when its last token is computed, not one later.",
            ),
            Check(
                "aborts and failures at every step",
                aborts_and_failures_at_every_step,
                "The message says what was read or counted wrongly, and after which abort or failure.",
            ),
        ),
        "Published pages are immutable and complete: that is why nobody ever has to wait for them or check them.",
    ),
    Part(
        ("withdraw",),
        (
            Check(
                "the README's example",
                withdraw_examples,
                "Pages behind a failed one are lost with it, and children go before parents.",
            ),
            Check(
                "everything behind a failed page goes",
                everything_behind_a_failed_page_goes,
                "Only one step of the chain was followed, or pages were lost that do not hang on the failed one.",
            ),
            Check(
                "the order does not hang on page ids",
                the_order_does_not_hang_on_page_ids,
                "Page ids say nothing about who is chained to whom.",
            ),
        ),
        "An engine that publishes at schedule time needs this; in vLLM a failed step ends the whole engine.",
    ),
)
COMPONENTS = {"publication": lambda answer, config: answer.Incremental()}
