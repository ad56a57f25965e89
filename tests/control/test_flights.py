"""Single flight, counted in tokens: who computes, who waits, and what happens when somebody leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from labs.kit.toy_engine import T, ToyEngine, oracle
from minivllm.config import CHOICES
from minivllm.flights import PageFlights, ReleaseAfterPrefill, ReleaseOnFinish
from minivllm.request import Request, UnknownRequestError
from minivllm.stats import Counters

EXACT = ["release_on_finish", "release_after_prefill"]
FLIGHTS = [*EXACT, "page"]
PUBLICATIONS = CHOICES["publication"]


def engine(single_flight: str, publication: str = "incremental", **settings: int) -> ToyEngine:
    return ToyEngine(
        single_flight=single_flight,
        publication=publication,
        **{"page_size": 16, "num_pages": 400, "max_batched_tokens": 256, **settings},  # type: ignore[arg-type]
    )


def burst(toy: ToyEngine, prompts: list[list[int]], max_tokens: int = 8) -> list[Request]:
    """All at once; returns them ended, each with the oracle's answer."""
    requests = [toy.submit(prompt, max_tokens) for prompt in prompts]
    toy.run()
    for request in requests:
        assert request.output_token_ids == oracle(request.prompt_token_ids, max_tokens)
    return requests


@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_eight_identical_cold_requests_compute_the_prompt_once_and_seven_tails(
    single_flight: str, publication: str
) -> None:
    toy = engine(single_flight, publication)
    burst(toy, [T(532)] * 8)
    assert toy.counters.computed_prefill_tokens == 532 + 7 * (532 - 528)
    # Pages that can be found before they are computed leave nobody to wait for.
    waited = (0, 0) if (single_flight, publication) == ("page", "on_schedule") else (1, 7)
    assert (toy.counters.flights_opened, toy.counters.flight_followers) == waited


def test_without_coordination_eight_identical_cold_requests_compute_the_prompt_eight_times() -> None:
    toy = engine("off", "on_finish")
    burst(toy, [T(532)] * 8, max_tokens=128)
    assert toy.counters.computed_prefill_tokens == 8 * 532
    assert toy.counters.flights_opened == toy.counters.flight_followers == 0


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_eight_questions_about_one_cold_document_compute_the_document_once(publication: str) -> None:
    toy = engine("page", publication)
    burst(toy, [[*T(512), *range(900 - 20 * number, 920 - 20 * number)] for number in range(8)])
    assert toy.counters.computed_prefill_tokens == 512 + 8 * 20


@pytest.mark.parametrize("order", [(40, 24, 56), (56, 40, 24), (24, 56, 40)])
def test_requests_that_share_a_part_compute_each_shared_page_once_whatever_the_order(
    order: tuple[int, ...],
) -> None:
    toy = engine("page", page_size=4, max_batched_tokens=8)
    prompts = [[*T(shared), *range(700 + shared, 706 + shared)] for shared in order]
    burst(toy, prompts)
    shared_once, tails = 56, 3 * 6
    assert toy.counters.computed_prefill_tokens == shared_once + tails


@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_distinct_prompts_take_the_same_steps_as_without_coordination(single_flight: str) -> None:
    steps = []
    for policy in ("off", single_flight):
        toy = engine(policy, page_size=4, max_batched_tokens=32)
        for number in range(8):
            toy.submit([100 + number, *T(40)], 4)
        steps.append(0)
        while toy.scheduler.has_requests:
            toy.step()
            steps[-1] += 1
        assert toy.counters.flight_followers == 0
    assert steps[0] == steps[1]


@pytest.mark.parametrize("single_flight", FLIGHTS)
@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("when", ["before its first step", "in prefill", "in decode", "at its last token"])
@pytest.mark.parametrize("end", ["abort", "failure"])
def test_followers_complete_when_their_leader_is_lost(
    single_flight: str, publication: str, when: str, end: str
) -> None:
    toy = engine(single_flight, publication, page_size=4, max_batched_tokens=8)
    leader, *followers = (toy.submit(T(22), 6) for _ in range(4))
    for _ in range({"before its first step": 0, "in prefill": 1, "in decode": 5, "at its last token": 8}[when]):
        toy.step()
    if leader in toy.requests and end == "abort":
        toy.abort(leader)
    elif leader in toy.requests:
        toy.step(failing=[leader])
    toy.run()
    for follower in followers:
        assert follower.output_token_ids == oracle(T(22), 6)
    assert toy.counters.computed_prefill_tokens <= 2 * 22 + 3 * 22 % 4 + 3 * 8, "at most one extra prefill"


@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_a_follower_that_leaves_touches_nobody_else(single_flight: str) -> None:
    toy = engine(single_flight, page_size=4, max_batched_tokens=8)
    leader, second, third = (toy.submit(T(22), 6) for _ in range(3))
    toy.step()
    toy.abort(second)
    toy.run()
    assert leader.output_token_ids == third.output_token_ids == oracle(T(22), 6)
    assert toy.counters.computed_prefill_tokens == 22 + 2


@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_the_same_tokens_under_another_salt_never_meet(single_flight: str) -> None:
    toy = engine(single_flight, page_size=4)
    for salt in ("a", "b", None, ""):
        toy.submit(T(22), 2, salt=salt)
    toy.run()
    assert toy.counters.computed_prefill_tokens == 4 * 22
    assert toy.counters.flight_followers == 0


@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_a_request_that_may_not_read_the_cache_neither_leads_nor_waits(single_flight: str) -> None:
    toy = engine(single_flight, page_size=4)
    for _ in range(2):
        toy.submit(T(22), 2, reads_cache=False)
    toy.step()
    assert all(request.num_computed_tokens == 22 for request in toy.requests)
    toy.run()
    assert toy.counters.flight_followers == 0


@pytest.mark.parametrize("single_flight", FLIGHTS)
def test_with_the_cache_off_every_policy_behaves_as_off(single_flight: str) -> None:
    toy = ToyEngine(single_flight=single_flight, prefix_cache=False, num_pages=32)
    burst(toy, [T(22)] * 3, 2)
    assert toy.counters.computed_prefill_tokens == 3 * 22
    assert toy.counters.flights_opened == 0


def test_release_after_prefill_lets_followers_start_before_their_leader_has_ended() -> None:
    toy = engine("release_after_prefill", page_size=4)
    leader, follower = toy.submit(T(22), 20), toy.submit(T(22), 2)
    toy.step()
    toy.step()
    assert leader in toy.requests
    assert follower.num_computed_tokens == 22
    toy.run()


@pytest.mark.parametrize("single_flight", EXACT)
def test_the_timeline_of_a_follower_says_when_it_was_released(single_flight: str) -> None:
    toy = engine(single_flight, page_size=4)
    leader, follower = toy.submit(T(22), 3), toy.submit(T(22), 2)
    toy.run()
    assert "released" not in [event.name for event in leader.metrics.events]
    assert [event.name for event in follower.metrics.events][:2] == ["released", "admitted"]


def test_release_on_finish_keeps_followers_waiting_until_their_leader_has_ended() -> None:
    toy = engine("release_on_finish", page_size=4)
    leader, follower = toy.submit(T(22), 6), toy.submit(T(22), 2)
    while leader in toy.requests:
        assert follower.num_computed_tokens == 0
        toy.step()
    toy.run()
    assert follower.metrics.cached_tokens == 20


def test_a_request_behind_a_waiting_follower_is_not_held_up() -> None:
    toy = engine("page", page_size=4, max_batched_tokens=16, max_active_requests=3)
    toy.submit(T(8), 1)
    toy.submit(T(40), 1)
    follower, other = toy.submit(T(40), 1), toy.submit(range(500, 504), 1)
    toy.step()
    assert follower.num_computed_tokens == 0
    toy.step()
    assert other not in toy.requests or other.num_computed_tokens == 4
    toy.run()


def test_a_half_computed_page_is_left_for_the_published_one() -> None:
    toy = engine("off", page_size=4, max_batched_tokens=6)
    toy.submit(T(16), 1)
    second = toy.submit(T(20), 1)
    for _ in range(3):
        toy.step()
    assert (second.num_computed_tokens, second.metrics.cached_tokens) == (14, 12)
    half_computed = second.page_table[3]
    toy.manager.restore_more(second)
    toy.audit()
    assert second.num_computed_tokens == 16
    assert second.page_table[3] != half_computed and toy.manager.pool.references(half_computed) == 0
    toy.run()
    assert second.output_token_ids == oracle(T(20), 1)
    assert (second.metrics.cached_tokens, second.metrics.computed_tokens) == (14, 6)


class TestCoordinator:
    """The exact-input coordinators by themselves."""

    @pytest.fixture(params=[ReleaseOnFinish, ReleaseAfterPrefill])
    def flights(self, request: pytest.FixtureRequest) -> Iterator[ReleaseOnFinish]:
        yield request.param(Counters())

    @pytest.fixture
    def make(self) -> Callable[..., Request]:
        from minivllm.config import SamplingParams

        return lambda name, salt=None, prompt=(1, 2, 3): Request(name, prompt, SamplingParams(), salt, 0.0)

    def test_the_end_of_a_request_nobody_knows_is_an_error(self, flights: ReleaseOnFinish) -> None:
        with pytest.raises(UnknownRequestError, match="'ghost'"):
            flights.ended("ghost", completed=True)

    def test_a_request_ends_once(self, flights: ReleaseOnFinish, make: Callable[..., Request]) -> None:
        assert flights.arrive(make("a"))
        assert flights.ended("a", completed=True) == []
        with pytest.raises(UnknownRequestError):
            flights.ended("a", completed=True)

    def test_after_its_release_a_flight_and_its_indexes_are_gone(
        self, flights: ReleaseOnFinish, make: Callable[..., Request]
    ) -> None:
        assert [flights.arrive(make(name)) for name in "abc"] == [True, False, False]
        assert flights.ended("a", completed=True) == ["b", "c"]
        assert flights._flight_of_key == flights._flight_of_id == {}
        assert flights._released == {"b", "c"}
        assert flights.arrive(make("d")), "a new identical request leads a new flight"
        for name in "bcd":
            flights.ended(name, completed=True)
        assert flights._released == set()

    def test_a_lost_leader_hands_over_to_exactly_one_follower(
        self, flights: ReleaseOnFinish, make: Callable[..., Request]
    ) -> None:
        for name in "abc":
            flights.arrive(make(name))
        assert flights.ended("a", completed=False) == ["b"]
        assert not flights.arrive(make("d"))
        assert flights.ended("b", completed=True) == ["c", "d"]


def test_page_flights_forget_a_request_that_has_ended() -> None:
    toy = engine("page", page_size=4)
    burst(toy, [T(22)] * 3, 2)
    flights = toy.flights
    assert isinstance(flights, PageFlights)
    flights.begin_step()
    assert not (flights._owner_of_page or flights._keys or flights._leaders or flights._followers)
