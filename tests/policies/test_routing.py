"""Routing: who gets a request, on states small enough to draw; and what must hold for any traffic."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.policies.access import Access
from minivllm.policies.designs import Setup
from minivllm.policies.fleet import FleetResult, replay_fleet
from minivllm.policies.protocol import CacheDesign
from minivllm.policies.radix import RadixCache
from minivllm.policies.replay import replay
from minivllm.policies.routing import ROUTERS, LongestPrefix, PrefixHash, RoundRobin, Router, Sticky
from minivllm.policies.traffic import make

IDLE = (0, 0)


def prompt(text: str, session: str | None = None, arrived_s: float = 0.0) -> Access:
    return Access(tuple(map(ord, text)), len(text), arrived_s=arrived_s, session=session)


def unbounded(num_replicas: int) -> list[CacheDesign]:
    return [RadixCache(None) for _ in range(num_replicas)]


class Noting:
    """A router that notes what another one chose."""

    def __init__(self, router: Router) -> None:
        self.router, self.chosen = router, list[tuple[Access, int]]()

    def choose(self, access: Access, in_hand: object) -> int:
        number = self.router.choose(access, in_hand)  # type: ignore[arg-type]
        self.chosen.append((access, number))
        return number


def replicas_by(key: str, chosen: list[tuple[Access, int]]) -> dict[object, set[int]]:
    found: dict[object, set[int]] = defaultdict(set)
    for access, number in chosen:
        found[getattr(access, key)].add(number)
    return found


def test_round_robin_takes_turns_whatever_comes() -> None:
    router = RoundRobin()
    assert [router.choose(prompt("same"), (9, 0, 0)) for _ in range(5)] == [0, 1, 2, 0, 1]


def test_a_session_sticks_to_its_replica_and_sessions_are_spread() -> None:
    router = Sticky()
    first = {name: router.choose(prompt("a", session=name), IDLE) for name in "abcdefgh"}
    assert set(first.values()) == {0, 1}
    assert all(router.choose(prompt("other", session=name), (9, 9)) == number for name, number in first.items())


def test_requests_without_a_session_take_turns() -> None:
    router = Sticky()
    assert [router.choose(prompt("a"), IDLE) for _ in range(4)] == [0, 1, 0, 1]


def test_prompts_that_begin_alike_hash_alike_and_only_the_beginning_counts() -> None:
    router = PrefixHash(prefix_tokens=3)
    assert len({router.choose(prompt(f"abc{end}"), IDLE) for end in "defgh"}) == 1
    assert {router.choose(prompt(f"{start}bc"), IDLE) for start in "abcdefgh"} == {0, 1}


def test_a_hash_over_blocks_takes_the_blocks_that_hold_its_tokens() -> None:
    router = PrefixHash(prefix_tokens=17)  # two blocks of 16
    same = [Access((1, 2, last), 48, unit_tokens=16) for last in range(9)]
    assert len({router.choose(access, IDLE) for access in same}) == 1
    other = [Access((1, second, 3), 48, unit_tokens=16) for second in range(9)]
    assert len({router.choose(access, IDLE) for access in other}) == 2


def test_the_longest_match_wins() -> None:
    router = LongestPrefix(2, cold="smallest-tree")
    assert router.choose(prompt("abcd"), IDLE) == 0
    assert router.choose(prompt("wxyz"), IDLE) == 1
    assert router.choose(prompt("wxy!"), IDLE) == 1
    assert router.choose(prompt("abcd and more"), IDLE) == 0


def test_a_match_must_be_more_than_the_threshold() -> None:
    for text, chosen in (("abc??????", 0), ("abc???????", 1)):  # 3 of 9 tokens, and 3 of 10
        router = LongestPrefix(2, threshold=0.3)
        assert router.choose(prompt("abc"), IDLE) == 0
        assert router.choose(prompt(text), (1, 0)) == chosen, "without a match, the least busy"


def test_a_replica_with_too_much_in_hand_is_passed_over_and_the_prefix_is_then_known_in_both() -> None:
    router = LongestPrefix(2, balance_abs=2, balance_rel=1.5)
    assert router.choose(prompt("abcd"), IDLE) == 0
    assert router.choose(prompt("abcd"), (2, 0)) == 0, "not more than balance_abs apart"
    assert router.choose(prompt("abcd"), (9, 7)) == 0, "nor that"
    assert router.choose(prompt("abcd"), (9, 6)) == 0, "not more than balance_rel times as many"
    assert router.choose(prompt("abcd"), (10, 6)) == 1
    assert router.choose(prompt("abcd"), (1, 0)) == 1, "of two equal matches, the less busy"


def test_one_at_a_time_everything_new_lands_on_the_first_replica_unless_trees_are_compared() -> None:
    documents = [prompt(f"{letter} is another document") for letter in "abcdef"]
    as_programmed, as_described = LongestPrefix(2), LongestPrefix(2, cold="smallest-tree")
    assert [as_programmed.choose(document, IDLE) for document in documents] == [0] * 6
    assert [as_described.choose(document, IDLE) for document in documents] == [0, 1] * 3


def test_a_long_common_system_message_keeps_strangers_together() -> None:
    result = replay_fleet(make("chat", sessions=6, gap_s=60.0), unbounded(2), LongestPrefix(2, cold="smallest-tree"))
    assert result.routed_balance == 2.0, "each first prompt is mostly the system message, which replica 0 has"


def test_salts_match_nothing_of_each_other() -> None:
    router = LongestPrefix(2, cold="smallest-tree")
    salted = [Access((1, 2, 3), 3, salt=salt) for salt in ("a", "b", "a", "b")]
    assert [router.choose(access, IDLE) for access in salted] == [0, 1, 0, 1]


def test_a_replica_computes_one_request_after_the_other() -> None:
    """At 1 token a second: 'abcd' keeps replica 0 busy until 4 s, a second request until 5 s: 'abcde' computes 1."""
    seen = []

    class Watching:
        def choose(self, access: Access, in_hand: list[int]) -> int:
            seen.append(tuple(in_hand))
            return 0

    requests = [prompt("abcd"), prompt("abcde"), prompt("x", arrived_s=4.0), prompt("y", arrived_s=6.0)]
    replay_fleet(requests, unbounded(2), Watching(), tokens_per_s=1.0)
    assert seen == [(0, 0), (1, 0), (1, 0), (0, 0)]


def test_hit_ratio_and_balance_by_hand() -> None:
    """Round robin: 'abcd' on 0, 'abcd' on 1, 'abcdef' on 0 finds 4. Computed 4 + 2 and 4, sent 10 and 4."""
    result = replay_fleet([prompt("abcd"), prompt("abcd"), prompt("abcdef")], unbounded(2), RoundRobin())
    assert result.hit_ratio_tokens == 4 / 14
    assert [replica.hit_ratio_tokens for replica in result.replicas] == [0.4, 0.0]
    assert result.balance == 6 / 5
    assert result.routed_balance == 10 / 7
    assert [replica["requests"] for replica in result.as_record()["replicas"]] == [2, 1]


def test_a_fleet_that_was_sent_nothing_is_even() -> None:
    result = replay_fleet([], unbounded(3), RoundRobin())
    assert (result.hit_ratio_tokens, result.balance, result.routed_balance) == (0.0, 1.0, 1.0)


def test_publication_takes_its_time_in_a_fleet_too() -> None:
    twins = [prompt("abcd"), prompt("abcd", arrived_s=1.0)]
    found = [
        replay_fleet(twins, unbounded(1), RoundRobin(), publication_delay_s=delay_s).hit_ratio_tokens
        for delay_s in (0.0, 2.0)
    ]
    assert found == [0.5, 0.0]


def test_two_caches_are_worth_one_of_twice_the_size_only_when_routing_parts_the_documents() -> None:
    traffic = list(make("document", seed=1, documents=6, document_tokens=400))

    def found(routing: Router, *capacities: int) -> float:
        designs = [Setup("radix", capacity_units=capacity).build() for capacity in capacities]
        return replay_fleet(traffic, designs, routing).hit_ratio_tokens

    one_large = found(RoundRobin(), 3600)
    parted = found(LongestPrefix(2, cold="smallest-tree"), 1800, 1800)
    mixed = found(RoundRobin(), 1800, 1800)
    assert parted > one_large - 0.05
    assert mixed < one_large - 0.3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"balance_abs": -1}, "balance_abs is -1"),
        ({"balance_rel": 0.5}, "balance_rel is 0.5"),
        ({"cold": "warm"}, "cold is 'warm'"),
        ({"num_replicas": 0}, "num_replicas is 0"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LongestPrefix(**{"num_replicas": 2, **wrong})  # type: ignore[arg-type]


def test_a_fleet_needs_replicas_and_a_speed() -> None:
    with pytest.raises(ValueError, match="designs is empty"):
        replay_fleet([], [], RoundRobin())
    with pytest.raises(ValueError, match="tokens_per_s is 0"):
        replay_fleet([], unbounded(1), RoundRobin(), tokens_per_s=0)
    with pytest.raises(ValueError, match="prefix_tokens is 0"):
        PrefixHash(0)


requests = st.lists(
    st.builds(
        lambda text, session, arrived_s: prompt(text, session, arrived_s),
        st.text("ab", min_size=1, max_size=6),
        st.sampled_from([None, "x", "y", "z"]),
        st.integers(0, 20),
    ),
    max_size=25,
).map(lambda accesses: sorted(accesses, key=lambda access: access.arrived_s))
names = st.sampled_from(list(ROUTERS))
replicas = st.integers(1, 4)


def routed(traffic: list[Access], name: str, num_replicas: int) -> tuple[FleetResult, list[tuple[Access, int]]]:
    router = Noting(ROUTERS[name](num_replicas))
    return replay_fleet(traffic, unbounded(num_replicas), router, tokens_per_s=1.0), router.chosen


@given(requests, names, replicas)
@settings(max_examples=60)
def test_every_request_goes_to_one_replica_and_no_token_is_lost(
    traffic: list[Access], name: str, num_replicas: int
) -> None:
    result, _ = routed(traffic, name, num_replicas)
    assert sum(replica.num_requests for replica in result.replicas) == len(traffic)
    assert sum(replica.routed_tokens for replica in result.replicas) == sum(a.num_input_tokens for a in traffic)
    assert 1.0 <= result.balance <= num_replicas + 1e-9
    assert 1.0 <= result.routed_balance <= num_replicas + 1e-9


@given(requests, names, replicas)
@settings(max_examples=60)
def test_no_routing_finds_more_than_one_unbounded_cache(traffic: list[Access], name: str, num_replicas: int) -> None:
    ideal = replay(traffic, RadixCache(None)).tally.hit_ratio_tokens
    assert routed(traffic, name, num_replicas)[0].hit_ratio_tokens <= ideal


@given(requests, names)
@settings(max_examples=40)
def test_before_one_replica_every_routing_is_a_plain_replay(traffic: list[Access], name: str) -> None:
    result, _ = routed(traffic, name, 1)
    assert result.replicas[0].replayed == replay(traffic, RadixCache(None))


@given(requests, names, replicas)
@settings(max_examples=60)
def test_routing_is_the_same_each_time(traffic: list[Access], name: str, num_replicas: int) -> None:
    assert routed(traffic, name, num_replicas) == routed(traffic, name, num_replicas)


@given(requests, replicas)
@settings(max_examples=60)
def test_the_promises_of_each_routing(traffic: list[Access], num_replicas: int) -> None:
    in_turn = [number for _, number in routed(traffic, "round-robin", num_replicas)[1]]
    counts = [in_turn.count(number) for number in range(num_replicas)]
    assert max(counts) - min(counts) <= 1
    by_session = replicas_by("session", routed(traffic, "sticky", num_replicas)[1])
    assert all(len(numbers) == 1 for session, numbers in by_session.items() if session is not None)
    by_prompt = replicas_by("unit_ids", routed(traffic, "prefix-hash", num_replicas)[1])
    assert all(len(numbers) == 1 for numbers in by_prompt.values())


def test_at_endless_speed_nothing_is_ever_in_hand() -> None:
    result = replay_fleet(make("few-shot"), unbounded(2), LongestPrefix(2), tokens_per_s=math.inf)
    assert [replica.num_requests for replica in result.replicas] == [160, 0]


def test_the_page_about_routing_shows_what_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "routing.md").read_text(encoding="utf-8")
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(code, "docs/routing.md", "exec"), {})
    assert capsys.readouterr().out == printed
