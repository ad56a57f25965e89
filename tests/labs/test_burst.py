"""Bursts on the real engine with the `tiny` model, counted in tokens and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from labs.kit.burst import POLICIES, Burst, burst_fields, prose, run_burst
from labs.kit.burst_tables import counts_table, server_facts, take_turns
from minivllm import LLM, EngineConfig
from minivllm.models.loading import LoadedModel, load_model

MakeLLM = Callable[..., LLM]


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model("tiny")


@pytest.fixture
def engine_for(loaded: LoadedModel) -> Iterator[MakeLLM]:
    made: list[LLM] = []

    def make(policy: str, **settings: object) -> LLM:
        sizes = {"num_pages": 64, "max_batched_tokens": 32, "num_slots": 0}
        made.append(LLM(loaded, EngineConfig(**{**sizes, **POLICIES[policy], **settings})))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for llm in made:
        llm.close()


@pytest.fixture
def prompt(loaded: LoadedModel) -> tuple[int, ...]:
    return prose(loaded.tokenizer.encode, 56)


@pytest.mark.parametrize(
    ("policy", "computed"),
    [("off", 4 * 56), ("release on finish", 80), ("release after prefill", 80), ("page", 80)],
)
def test_four_at_once_compute_the_prompt_four_times_or_once_and_three_tails(
    engine_for: MakeLLM, prompt: tuple[int, ...], policy: str, computed: int
) -> None:
    burst = run_burst(engine_for(policy), [prompt] * 4, 6)
    assert (burst.computed, burst.computed + burst.restored) == (computed, 4 * 56)


def test_every_burst_begins_with_an_empty_cache(engine_for: MakeLLM, prompt: tuple[int, ...]) -> None:
    llm = engine_for("off")
    assert [run_burst(llm, [prompt], 3).computed for _ in range(2)] == [56, 56]


def test_an_event_stands_in_the_step_that_recorded_it(engine_for: MakeLLM, prompt: tuple[int, ...]) -> None:
    leader, follower = run_burst(engine_for("release after prefill"), [prompt] * 2, 3).tracks
    assert [(event.name, event.step) for event in leader.events] == [
        ("queued", 0), ("admitted", 1), ("prefill", 1), ("prefill", 2), ("first_token", 2), ("ended:length", 4),
    ]  # fmt: skip
    assert [(event.name, event.step) for event in follower.events] == [
        ("queued", 0), ("released", 2), ("admitted", 3), ("prefill", 3), ("first_token", 3), ("ended:length", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(("when", "step"), [("prefill", 1), ("decode", 3), ("end", 4)])
def test_those_who_come_late_arrive_after_a_step_that_the_first_request_decides(
    engine_for: MakeLLM, prompt: tuple[int, ...], when: str, step: int
) -> None:
    _, second = run_burst(engine_for("page"), [prompt], 3, late=[prompt], when=when).tracks  # type: ignore[arg-type]
    assert second.events[0].name == "queued" and second.events[0].step == step


def test_a_moment_that_never_comes_ends_the_waiting(engine_for: MakeLLM, prompt: tuple[int, ...]) -> None:
    burst = run_burst(engine_for("page"), [prompt], 1, late=[prompt], when="decode")
    assert len(burst.tracks) == 2


def test_engines_take_turns(engine_for: MakeLLM, prompt: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[LLM] = []

    def record(llm: LLM, *_: object, **__: object) -> str:
        seen.append(llm)
        return "a burst"

    monkeypatch.setattr("labs.kit.burst_tables.run_burst", record)
    one, other = engine_for("off"), engine_for("page")
    runs = take_turns({"one": one, "other": other}, 2, [prompt], 3)
    assert seen == [one, other, one, other]
    assert runs == {"one": ["a burst"] * 2, "other": ["a burst"] * 2}


def test_a_table_and_a_record_hold_the_counts(engine_for: MakeLLM, prompt: tuple[int, ...]) -> None:
    runs: dict[str, list[Burst]] = take_turns({"page": engine_for("page")}, 2, [prompt] * 2, 3)
    assert counts_table(runs).splitlines()[1].split() == ["page", "2", "64", "48", "48", "5", "2.5"]
    fields = burst_fields("two", runs["page"])
    assert (fields["label"], fields["computed_tokens"], len(fields["first_token_s"])) == ("two", 64, 2)


def test_prose_is_as_long_as_asked_and_another_number_is_another_text(loaded: LoadedModel) -> None:
    encode = loaded.tokenizer.encode
    one, other = prose(encode, 48, 1), prose(encode, 48, 2)
    assert len(one) == len(other) == 48
    assert one[:16] != other[:16]
    with pytest.raises(ValueError, match="has 3 tokens where 8 are needed"):
        prose(lambda text: [1, 2, 3], 8)


def test_server_facts_say_who_saves_and_who_tells_nothing() -> None:
    bursts = {
        "identical": {"computed_over_cold": 1.2, "requests": [{}, {}]},
        "distinct": {"computed_over_cold": 1.99, "requests": [{}, {}]},
        "late": {"computed_over_cold": None, "requests": [{}, {}]},
    }
    assert server_facts({"bursts": bursts}).splitlines() == [
        "identical  2 requests compute less than 2 single cold ones",
        "distinct   2 requests compute as much as 2 single cold ones",
        "late       2 requests: this server tells no cached tokens",
    ]
