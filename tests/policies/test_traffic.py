"""Generated traffic: the same from the same seed, in order of arrival, and shared exactly where its docstring says."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from itertools import islice, pairwise

import pytest

from minivllm.policies.access import Access
from minivllm.policies.traffic import WORKLOADS, TrafficError, make
from minivllm.policies.traffic.workload import Chance, by_arrival

NAMES = list(WORKLOADS)

# Of the whole traffic from seed 0. A change here changes every table and every reader's results: say so in the log.
FINGERPRINTS = {
    "chat": "4aac5674cc642892",
    "agent": "d690dc45b3265a1e",
    "retrieval": "84850945302467f1",
    "few-shot": "3191860fe202d406",
    "self-consistency": "8733ca407e1faff4",
    "tree-search": "ba3b24e4f212002d",
    "document": "a6a0c10f4bf8cdc6",
    "preamble": "042741c2401a9159",
}


def fingerprint(workload: object) -> str:
    digest = hashlib.sha256()
    for access in workload:  # type: ignore[attr-defined]
        digest.update(repr((access.unit_ids, access.output_ids, round(access.arrived_s, 6), access.session)).encode())
    return digest.hexdigest()[:16]


def shared(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def by_session(accesses: list[Access]) -> dict[str | None, list[Access]]:
    sessions: dict[str | None, list[Access]] = defaultdict(list)
    for access in accesses:
        sessions[access.session].append(access)
    return sessions


def test_there_are_the_eight_workloads_of_the_course() -> None:
    assert list(WORKLOADS) == [
        *("chat", "agent", "retrieval", "few-shot"),
        *("self-consistency", "tree-search", "document", "preamble"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_traffic_on_every_machine(name: str) -> None:
    assert fingerprint(make(name)) == FINGERPRINTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_can_be_read_twice_and_another_seed_gives_other_texts(name: str) -> None:
    workload = make(name, seed=1)
    assert list(workload) == list(workload)
    assert next(iter(workload)).unit_ids[:8] != next(iter(make(name, seed=2))).unit_ids[:8]


@pytest.mark.parametrize("name", NAMES)
def test_requests_come_in_order_of_arrival_with_whole_prompts_and_known_answers(name: str) -> None:
    accesses = list(make(name))
    assert all(first.arrived_s <= second.arrived_s for first, second in pairwise(accesses))
    assert all(access.num_input_tokens == len(access.unit_ids) > 0 for access in accesses)
    assert all(access.num_output_tokens == len(access.output_ids) > 0 for access in accesses)
    assert all(access.session and access.unit_tokens == 1 for access in accesses)


@pytest.mark.parametrize("name", NAMES)
def test_requests_are_made_one_by_one(name: str) -> None:
    endless = {"sessions", "tasks", "questions", "requests", "problems"} & set(vars(make(name)))
    many = make(name, **dict.fromkeys(endless, 10**9))
    assert len(list(islice(many, 5))) == 5


@pytest.mark.parametrize(("name", "history"), [("chat", "turns"), ("agent", "steps")])
def test_each_prompt_of_a_conversation_holds_the_last_one_and_its_answer(name: str, history: str) -> None:
    sessions = by_session(list(make(name, **{history: 4})))
    for turns in sessions.values():
        assert len(turns) == 4
        for last, following in pairwise(turns):
            known = last.unit_ids + last.output_ids
            assert following.unit_ids[: len(known)] == known
            assert len(following.unit_ids) > len(known)
            assert following.arrived_s > last.arrived_s


def test_people_who_chat_share_the_system_message_and_nothing_behind_it() -> None:
    first, second, *_ = by_session(list(make("chat", system_tokens=30))).values()
    assert shared(first[-1].unit_ids, second[-1].unit_ids) == 30


def test_stable_passages_are_shared_by_topic() -> None:
    prompts = [access.unit_ids for access in make("retrieval", topics=2, instruction_tokens=10, passage_tokens=8)]
    lengths = {shared(prompts[0], other) for other in prompts[1:]}
    assert lengths == {10, 10 + 5 * 8}  # the other topic, and the same one


def test_reranked_passages_are_the_same_texts_in_another_order() -> None:
    sizes = {"topics": 1, "passages": 3, "passage_tokens": 8, "instruction_tokens": 10, "question_tokens": 4}
    stable, reranked = (list(make("retrieval", **sizes, is_reranked=is_reranked)) for is_reranked in (False, True))
    assert [sorted(a.unit_ids) for a in stable] == [sorted(a.unit_ids) for a in reranked]
    orders = {access.unit_ids[10 : 10 + 3 * 8] for access in reranked}
    assert len(orders) == 6, "all orders of three passages come up"


def test_samples_of_one_problem_arrive_at_once_with_one_prompt() -> None:
    problems = by_session(list(make("self-consistency", problems=3, samples=5)))
    assert len(problems) == 3
    for samples in problems.values():
        assert len(samples) == 5
        assert len({(sample.unit_ids, sample.arrived_s) for sample in samples}) == 1
        assert len({sample.output_ids for sample in samples}) == 5


def test_a_tree_search_goes_on_from_thoughts_that_were_generated() -> None:
    accesses = list(make("tree-search", problems=1, depth=3, width=3, beam=2))
    assert len(accesses) == 3 + 2 * 3 + 2 * 3
    thoughts = {access.unit_ids + access.output_ids for access in accesses}
    deeper = [access for access in accesses if access.arrived_s > accesses[0].arrived_s]
    assert all(access.unit_ids in thoughts for access in deeper)
    assert len({access.unit_ids for access in deeper}) == 2 + 2, "two nodes are kept on each level"


@pytest.mark.parametrize(
    ("name", "sizes", "num_shared"),
    [
        ("few-shot", {"applications": 1, "examples": 3, "example_tokens": 7}, 21),
        ("document", {"documents": 1, "document_tokens": 50}, 50),
        ("preamble", {"users": 1, "preamble_tokens": 5, "corpus_tokens": 40}, 45),
    ],
)
def test_what_stands_before_the_question_is_shared(name: str, sizes: dict[str, int], num_shared: int) -> None:
    prompts = [access.unit_ids for access in make(name, **sizes)]
    assert {shared(first, second) for first, second in pairwise(prompts)} == {num_shared}


def test_two_users_share_nothing_though_their_prompts_hold_the_same_corpus() -> None:
    first, second, *_ = by_session(list(make("preamble", preamble_tokens=5, corpus_tokens=40))).values()
    assert shared(first[0].unit_ids, second[0].unit_ids) == 0
    assert first[0].unit_ids[5:45] == second[0].unit_ids[5:45]


@pytest.mark.parametrize(
    ("name", "sizes", "said"),
    [
        ("chatt", {}, "did you mean 'chat'"),
        ("chat", {"documents": 3}, "chat has no size 'documents': it has sessions"),
        ("chat", {"turns": 0}, "turns of chat is 0: give a whole number from 1"),
        ("chat", {"turns": 2.5}, "turns of chat is 2.5"),
        ("chat", {"turns": True}, "turns of chat is True"),
        ("chat", {"gap_s": 0}, "gap_s of chat is 0: give a number above 0"),
        ("chat", {"gap_s": float("nan")}, "gap_s of chat is nan"),
        ("retrieval", {"is_reranked": 1}, "is_reranked of retrieval is 1: give True or False"),
    ],
)
def test_a_wrong_size_is_named_with_its_value(name: str, sizes: dict[str, float], said: str) -> None:
    with pytest.raises(TrafficError, match=said):
        make(name, **sizes)


def test_a_seed_that_is_no_number_is_refused() -> None:
    with pytest.raises(TrafficError, match="seed of chat is '7'"):
        make("chat", seed="7")  # type: ignore[arg-type]


def test_sessions_are_merged_by_arrival_and_only_those_under_way_are_begun() -> None:
    begun = []

    def session(name: str, *arrivals_s: float):  # type: ignore[no-untyped-def]
        begun.append(name)
        for arrived_s in arrivals_s:
            yield Access((1,), 1, arrived_s=arrived_s, session=name)

    merged = by_arrival(iter([(0.0, session("a", 0, 5)), (2.0, session("b", 2, 3)), (9.0, session("c", 9))]))
    assert [(access.session, access.arrived_s) for access in islice(merged, 3)] == [("a", 0), ("b", 2), ("b", 3)]
    assert begun == ["a", "b"]
    assert [access.session for access in merged] == ["a", "c"]


def test_popular_things_come_up_more_often_in_the_order_of_their_numbers() -> None:
    chance = Chance(b"seed")
    drawn = [chance.popular(3) for _ in range(3000)]
    counts = [drawn.count(number) for number in range(3)]
    assert sum(counts) == 3000
    assert all(abs(count - 3000 * share) < 120 for count, share in zip(counts, (6 / 11, 3 / 11, 2 / 11), strict=True))
