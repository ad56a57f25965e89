"""Three ways to write a flight down, the impossible states each admits, and a patch that hides the end of nobody."""

from __future__ import annotations

import pytest

from labs.kit.burst import POLICIES, prose
from labs.kit.coordinator_search import designs_table, impossible_states, path_text, search
from labs.kit.coordinator_states import DESIGNS, EMPTY, GONE_LEADER, KINDS, TWO_ROLES, UNWOKEN, Design, with_class
from labs.kit.coordinators import JoinsAnyFlight, NobodyTakesOver
from labs.kit.silenced_flights import (
    EndsUnderAnotherName,
    SilentReleaseAfterPrefill,
    SilentReleaseOnFinish,
    patch_text,
    what_happens,
)
from minivllm import LLM, EngineConfig
from minivllm.config import SamplingParams
from minivllm.flights import NoFlights, ReleaseAfterPrefill, ReleaseOnFinish
from minivllm.models.loading import load_model
from minivllm.request import Request, UnknownRequestError
from minivllm.stats import Counters

NAMES = [design.name for design in DESIGNS]
PHASED, LED, RELEASED = DESIGNS


def request(name: str) -> Request:
    return Request(name, (1, 2, 3), SamplingParams(), None, 0.0)


@pytest.mark.parametrize("design", DESIGNS, ids=NAMES)
class TestEveryDesign:
    @pytest.mark.parametrize("ids", ["ab", "abc", "abcd"])
    def test_no_order_of_events_leads_to_a_bad_state(self, design: Design, ids: str) -> None:
        found = search(design, ids)
        assert (found.contradictions, found.lost, found.leaked) == ({}, None, None)
        assert found.num_states > len(ids) * 4

    def test_what_the_search_meets_can_be_written_down(self, design: Design) -> None:
        fresh = design.read(design.make(Counters()))
        assert fresh in list(design.every_state("abc")) and not fresh.contradictions()

    def test_followers_wait_and_are_freed_together(self, design: Design) -> None:
        flights = design.make(Counters())
        assert [flights.arrive(request(name)) for name in "abc"] == [True, False, False]
        assert flights.prompt_computed(request("a")) == ["b", "c"]
        assert flights.prompt_computed(request("b")) == []

    def test_a_lost_leader_hands_over_to_exactly_one(self, design: Design) -> None:
        flights = design.make(Counters())
        for name in "abc":
            flights.arrive(request(name))
        assert flights.ended("a", completed=False) == ["b"]
        assert flights.prompt_computed(request("b")) == ["c"]

    def test_a_request_ends_once(self, design: Design) -> None:
        flights = design.make(Counters())
        flights.arrive(request("a"))
        flights.ended("a", completed=True)
        with pytest.raises(UnknownRequestError, match="'a'"):
            flights.ended("a", completed=True)

    def test_every_wrong_end_is_reported(self, design: Design) -> None:
        found = search(design, with_misnamed_ends=True)
        assert found.num_misnamed == found.num_reported > 0
        assert found.num_lost == 0

    def test_it_serves_the_real_engine(self, design: Design) -> None:
        config = EngineConfig(num_pages=64, num_slots=0, publication="after_prefill")
        with LLM(load_model("tiny"), config, {"flights": design.make(Counters())}) as llm:
            prompt = prose(llm.tokenizer.encode, 56)
            outputs = llm.generate([prompt] * 3, SamplingParams(max_tokens=2, temperature=0.0))
            assert [output.metrics.computed_tokens for output in outputs] == [56, 8, 8]


def test_where_a_flight_is_its_leader_one_kind_of_impossible_state_is_left() -> None:
    kinds = [{kind for kind in KINDS if impossible_states(design)[kind]} for design in DESIGNS]
    assert kinds == [{UNWOKEN, GONE_LEADER, EMPTY, TWO_ROLES}] * 2 + [{TWO_ROLES}]


def test_states_are_counted_one_by_one() -> None:
    counted = [
        (impossible_states(design, "a")["all"], impossible_states(design, "a")["impossible"]) for design in DESIGNS
    ]
    # With one request: 2 phases or a leader or none, times waiting or not, times member or not, and "no flight".
    assert counted == [(1 + 2 * 2 * 2, 6), (1 + 2 * 2 * 2, 6), (2 * (1 + 2), 3)]


@pytest.mark.parametrize(
    ("design", "broken", "path"),
    [
        (PHASED, JoinsAnyFlight, "a arrives, a has its prompt computed, b arrives"),
        (LED, NobodyTakesOver, "a arrives, b arrives, a fails"),
    ],
)
def test_one_forgotten_line_loses_a_request_on_a_shortest_way(
    design: Design, broken: type[NoFlights], path: str
) -> None:
    found = search(with_class(design, broken))
    assert path_text(found.lost) == path
    assert found.lost_says == [UNWOKEN]


def test_the_table_has_a_column_for_each_design() -> None:
    first, *rows = designs_table(DESIGNS, "ab").splitlines()
    assert first.startswith("2 requests") and all(name in first for name in NAMES)
    assert rows[-1].split()[-3:] == ["0", "0", "0"]


def test_the_patch_is_a_diff_of_the_real_source() -> None:
    lines = patch_text().splitlines()
    removed = [line for line in lines if line.startswith("-") and "---" not in line]
    added = [line for line in lines if line.startswith("+") and "+++" not in line]
    assert len(removed) == len(added) == 1
    assert "raise UnknownRequestError(" in removed[0] and "return []" in added[0]


def test_the_patch_hides_every_wrong_end_and_leaves_somebody_waiting() -> None:
    found = search(with_class(RELEASED, SilentReleaseAfterPrefill), with_misnamed_ends=True)
    assert found.num_reported == 0 < found.num_misnamed
    assert path_text(found.lost) == "a arrives, b arrives, a ends and is reported under another name"
    assert path_text(found.leaked) == "a arrives, a ends and is reported under another name"


def test_in_the_engine_the_error_names_the_request_and_the_patch_lets_others_wait_for_ever() -> None:
    told = {}
    for flights in (ReleaseOnFinish, SilentReleaseOnFinish):
        config = EngineConfig(num_pages=64, num_slots=0)
        llm = LLM(load_model("tiny"), config, {"flights": EndsUnderAnotherName(flights(Counters()))})
        told[flights] = what_happens(llm, [prose(llm.tokenizer.encode, 40)] * 3)
    assert told[ReleaseOnFinish].startswith("step 4 raises UnknownRequestError: request 'cmpl-request-1'")
    assert told[SilentReleaseOnFinish] == "no error. After 50 steps 1 of 3 requests have ended, 0 run, 2 wait"


def test_the_policies_of_a_burst_are_settings_of_the_engine() -> None:
    for settings in POLICIES.values():
        EngineConfig(**settings)  # type: ignore[arg-type]
    assert ReleaseAfterPrefill is RELEASED.make
