"""Every interleaving of up to three requests, played on the learner's coordinator and on a slow model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from labs.kit.exercises.flight_stories import MODES, Event, interleavings, play, told
from labs.kit.exercises.on_engine import watched
from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.toy_engine import ToyEngine, oracle
from minivllm.request import UnknownRequestError

SAME, OTHER, SALTED = ((None, (1, 2)), (None, (1, 3)), ("a", (1, 2)))
MAX_ENTRIES = 10_000


ALL_ARRIVE: tuple[Event, ...] = (("arrive", "A"), ("arrive", "B"), ("arrive", "C"))


def of_one_prompt(answer: Answer, *events: Event, modes: Iterable[str] = MODES) -> None:
    """One story of requests with the same prompt, under each release."""
    for mode in modes:
        play(answer, mode, dict.fromkeys("ABC", SAME), list(events))


def examples(answer: Answer) -> None:
    of_one_prompt(answer, *ALL_ARRIVE, ("prompt_computed", "A"), ("completed", "A"))


def a_lost_leader_hands_over_to_one(answer: Answer) -> None:
    of_one_prompt(answer, *ALL_ARRIVE, ("lost", "A"), ("prompt_computed", "B"), ("completed", "B"))


def a_lost_follower_touches_nobody(answer: Answer) -> None:
    of_one_prompt(answer, *ALL_ARRIVE, ("lost", "B"), ("prompt_computed", "A"), ("completed", "A"))


def salts_and_prompts_never_meet(answer: Answer) -> None:
    for mode, other in itertools.product(MODES, (OTHER, SALTED)):
        play(
            answer,
            mode,
            {"A": SAME, "B": other},
            [("arrive", "A"), ("arrive", "B"), ("prompt_computed", "A"), ("completed", "A")],
        )


def after_a_release_a_new_flight_begins(answer: Answer) -> None:
    start: tuple[Event, ...] = (("arrive", "A"), ("arrive", "B"), ("prompt_computed", "A"))
    then: tuple[Event, ...] = (("arrive", "C"), ("completed", "A"), ("prompt_computed", "C"))
    of_one_prompt(answer, *start, *then, modes=["release_after_prefill"])


def every_interleaving_of_three(answer: Answer) -> None:
    for mode, third in itertools.product(MODES, (SAME, OTHER)):
        keys = {"A": SAME, "B": SAME, "C": third}
        for events in interleavings(mode, keys):
            play(answer, mode, keys, events)


def unknown_ids_raise(answer: Answer) -> None:
    keys = dict.fromkeys("AB", SAME)
    stories: tuple[tuple[list[Event], str], ...] = (
        ([], "X"),
        ([("arrive", "A"), ("completed", "A")], "A"),
        ([("arrive", "A"), ("lost", "A")], "A"),
        ([("arrive", "A"), ("arrive", "B"), ("lost", "B")], "B"),
        ([("arrive", "A"), ("arrive", "B"), ("prompt_computed", "A"), ("completed", "A"), ("completed", "B")], "B"),
    )
    for mode, (events, name) in itertools.product(MODES, stories):
        for completed in (True, False):
            coordinator, _ = play(answer, mode, keys, events)
            try:
                result = coordinator.ended(name, completed)
            except UnknownRequestError:
                continue
            raise Wrong(
                f"ended({name!r}) of a request that is unknown by now says nothing",
                drawing=told(events, mode) or mode,
                expected="UnknownRequestError",
                actual=result,
            )


def nothing_is_remembered(answer: Answer) -> None:
    keys = dict.fromkeys("ABC", SAME)
    for mode in MODES:
        coordinator, _ = play(answer, mode, keys, [])
        before = num_entries(coordinator)
        for events in interleavings(mode, keys):
            if {name for kind, name in events if kind in ("completed", "lost")} != {
                name for kind, name in events if kind == "arrive"
            }:
                continue
            coordinator, _ = play(answer, mode, keys, events)
            if num_entries(coordinator) > before:
                raise Wrong(
                    "everybody has ended, and something is still remembered",
                    drawing=told(events, mode),
                    expected=f"{before} entries",
                    actual=f"{num_entries(coordinator)} entries in {sorted(vars(coordinator))}",
                )


def num_entries(coordinator: Any) -> int:
    """How much its collections hold, however deep."""
    waiting, seen, count = list(vars(coordinator).values()), set(), 0
    while waiting and count < MAX_ENTRIES:
        thing = waiting.pop()
        if id(thing) in seen or not isinstance(thing, dict | list | set | tuple | frozenset):
            continue
        seen.add(id(thing))
        count += len(thing)
        waiting.extend([*thing, *thing.values()] if isinstance(thing, dict) else thing)
    return count


def the_engine_runs_on_it(answer: Answer) -> None:
    for mode, after_prefill in MODES.items():
        for leader_steps in range(8):
            engine = ToyEngine(
                page_size=2,
                num_pages=16,
                max_batched_tokens=2,
                components={"flights": answer.MyCoordinator(after_prefill)},
            )
            with watched(f"{mode}, the leader is aborted after {leader_steps} steps", engine):
                requests = [engine.submit([1, 2, 3, 4, 5, 6, 7], 3) for _ in range(3)]
                for _ in range(leader_steps):
                    engine.step()
                if requests[0] in engine.requests:
                    engine.abort(requests[0])
                engine.run()
                for one in requests[1:]:
                    assert one.token_ids[7:] == oracle([1, 2, 3, 4, 5, 6, 7], 3), (
                        f"{one.request_id} gets another answer"
                    )


TRUE_STATEMENTS = {"a", "c", "e"}


def the_review(answer: Answer) -> None:
    said = set(answer.review())
    if not said <= set("abcde"):
        raise Wrong("there are the statements a to e", expected="letters from a to e", actual=sorted(said))
    num_wrong = len(said ^ TRUE_STATEMENTS)
    if num_wrong:
        raise Wrong(
            f"{num_wrong} of the five statements are judged wrongly",
            expected="the true ones, all of them",
            actual=sorted(said),
        )


PARTS = (
    Part(
        ("MyCoordinator",),
        (
            Check(
                "the README's example",
                examples,
                "Followers must come back from exactly one call: prompt_computed or ended, as the mode says.",
            ),
            Check(
                "a lost leader hands over to one",
                a_lost_leader_hands_over_to_one,
                "All followers were let go (they compute the same prompt again), or none (they wait for ever).",
            ),
            Check(
                "a lost follower touches nobody",
                a_lost_follower_touches_nobody,
                "A follower that goes was treated like a leader, or stayed in the list of those to release.",
            ),
            Check(
                "salts and prompts never meet",
                salts_and_prompts_never_meet,
                "The key of a flight is the salt and all token ids.",
            ),
            Check(
                "after a release a new flight begins",
                after_a_release_a_new_flight_begins,
                "The flight was not forgotten at the release, or a released id was taken for a leader's.",
            ),
            Check(
                "unknown ids raise",
                unknown_ids_raise,
                "An id that has ended must be forgotten, and an id that is not known must not pass in silence.",
            ),
            Check(
                "every interleaving of three",
                every_interleaving_of_three,
                "A story that the checks before did not tell; it is the shortest that goes wrong.",
            ),
            Check(
                "nothing is remembered",
                nothing_is_remembered,
                "An entry goes neither at the release nor at the end: a server that runs for months fills its memory.",
            ),
            Check(
                "the engine runs on it",
                the_engine_runs_on_it,
                "The engine waits for ever, or a follower is answered wrongly, after the abort that is named.",
            ),
        ),
        "No state at all beyond the lists: that is why there is so little that can be inconsistent.",
    ),
    Part(
        ("review",),
        (
            Check(
                "the statements",
                the_review,
                "Play each statement with the coordinator you wrote: what would have raised, and what happens now?",
            ),
        ),
        "An error nobody understands is the cheapest moment to find a bug. Silenced, it is a request that hangs.",
    ),
)
COMPONENTS = {"flights": lambda answer, config: answer.MyCoordinator(release_after_prefill=True)}
