"""What a run says, from times and counts that are made up: no server, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from labbook.answer import Answer
from labbook.conclude import conclude, is_settled, needs_short_requests
from labbook.experiments import COLD_WARM, CONTROL, EVICTION, Experiment, Nonces
from labbook.grouped_run import Run
from labbook.repeats import repeats_for
from labbook.run import Plan, Sent
from labbook.signals import CounterDelta

PROMPT_TOKENS = 600
FAST, SLOW = 0.2, 2.0


@dataclass
class Watch:
    """Counters as they would have been read; none when `deltas` is empty."""

    deltas: dict[str, CounterDelta] = field(default_factory=dict)
    why: str = "no counters"
    page_tokens: int | None = None
    restarted: bool = False

    def delta(self, phase: str) -> CounterDelta | None:
        return self.deltas.get(phase)

    def steps(self) -> list[CounterDelta]:
        return list(self.deltas.values())

    @property
    def sent_tokens(self) -> list[int | None]:
        return [None] * len(self.deltas)

    def has_restarted(self) -> bool:
        return self.restarted


def answer(seconds: float, cached: int | None, timings: dict | None = None) -> Answer:
    return Answer(
        ttft_s=seconds,
        total_s=seconds + 0.1,
        first_field="content",
        prompt_tokens=PROMPT_TOKENS,
        completion_tokens=8,
        cached_tokens=cached,
        cached_source=None if cached is None else "usage.prompt_tokens_details.cached_tokens",
        timings=timings,
        finish_reason="length",
        streamed=True,
        body_sha256="",
        why={} if cached is not None else {"cached_tokens": "not told"},
    )


def made(
    *groups: dict[str, float],
    experiment: Experiment = COLD_WARM,
    cached: dict[str, int] | None = None,
    watch: Watch | None = None,
    timings: dict | None = None,
) -> Run:
    """A run whose groups have one request of each phase with the seconds given; `cached` tokens by phase."""
    sent = [
        Sent(phase, answer(seconds, (cached or {}).get(phase) if cached else None, timings), None, b"", number)
        for number, group in enumerate(groups, start=1)
        for phase, seconds in group.items()
    ]
    return Run(
        plan=Plan(),
        experiment=experiment,
        repeats=repeats_for(None),
        model="m1",
        base_url="http://h/v1",
        warm_up=answer(3.0, None),
        warm_up_nonce="w",
        nonces=tuple(Nonces("a", "b") for _ in groups),
        sent=tuple(sent),
        shared_tokens=570,
        shared_tokens_source="counted",
        watch=watch or Watch(),  # type: ignore[arg-type]
    )


ON = {"cold": SLOW, "warm": FAST, "control": SLOW}
OFF = {"cold": SLOW, "warm": SLOW, "control": SLOW}
NOISY = {"cold": SLOW, "warm": 1.3, "control": 1.4}
HITS = {"cold": 0, "warm": 560, "control": 0}
NO_HITS = {"cold": 0, "warm": 0, "control": 0}


def word(run: Run) -> str:
    return conclude(run)[1].word


def test_one_group_is_enough_only_when_counts_agree_with_the_clock() -> None:
    assert is_settled(made(ON, cached=HITS)) and word(made(ON, cached=HITS)) == "reused"
    assert is_settled(made(OFF, cached=NO_HITS)) and word(made(OFF, cached=NO_HITS)) == "not_reused"
    assert not is_settled(made(ON))
    assert not is_settled(made(OFF, cached=HITS))


def test_the_clock_alone_is_enough_from_three_groups_on() -> None:
    for group, right in ((ON, "reused"), (OFF, "not_reused")):
        assert not is_settled(made(group, group))
        assert is_settled(made(group, group, group)) and word(made(group, group, group)) == right


def test_a_clock_that_cannot_tell_goes_on_alone_and_stops_beside_counts() -> None:
    undecided = (ON, NOISY, OFF)
    assert not is_settled(made(*undecided)) and word(made(*undecided)) == "inconclusive"
    assert is_settled(made(*undecided, cached=NO_HITS)) and word(made(*undecided, cached=NO_HITS)) == "not_reused"


def test_prompts_that_are_too_short_for_a_clock_are_not_sent_again() -> None:
    run = made({"cold": 0.01, "warm": 0.01, "control": 0.01})
    assert is_settled(run) and word(run) == "inconclusive"


def test_a_contaminated_measurement_is_not_repeated() -> None:
    run = made(ON, watch=Watch(restarted=True))
    assert is_settled(run) and word(run) == "contaminated"


def test_equal_times_ask_for_short_prompts_and_faster_ones_do_not() -> None:
    assert needs_short_requests(made(OFF, OFF, OFF))
    assert not needs_short_requests(made(ON, ON, ON))
    assert not needs_short_requests(made(OFF, OFF, OFF | {"short": FAST}))


def test_equal_times_are_no_evidence_where_a_short_prompt_takes_as_long() -> None:
    """A slow network: the cache may work, and the clock cannot see it."""
    far = made(OFF, OFF, OFF | {"short": 1.9})
    told, verdict = conclude(far)
    assert (told["clock"].supports, verdict.word) == (None, "inconclusive")
    assert "a prompt of a few words takes 1900 ms, too" in told["clock"].why
    assert is_settled(far)
    assert word(made(OFF, OFF, OFF | {"short": FAST})) == "not_reused"
    assert word(made(OFF, OFF, OFF | {"short": 1.9}, cached=HITS)) == "reused"


def test_a_cold_request_that_was_warm_in_one_group_of_three_is_contamination() -> None:
    run = made(ON, ON, ON, cached=HITS)
    sent = list(run.sent)
    sent[3] = Sent("cold", answer(FAST, 560), None, b"", 2)
    contaminated = Run(**{**run.__dict__, "sent": tuple(sent)})
    assert word(contaminated) == "contaminated"


def test_a_templates_head_that_all_prompts_share_is_no_contamination() -> None:
    head = {"cold": 48, "warm": 560, "control": 48}
    assert word(made(ON, cached=head)) == "reused"


def test_a_control_is_judged_against_the_cold_request_and_needs_a_warm_one() -> None:
    right = made(ON, ON, ON, experiment=CONTROL, cached=HITS)
    assert word(right) == "not_reused"
    behind = made(*[ON | {"control": FAST}] * 3, experiment=CONTROL, cached=HITS | {"control": 560})
    assert word(behind) == "reused"
    off = made(OFF, OFF, OFF, experiment=CONTROL, cached=NO_HITS)
    assert word(off) == "inconclusive"
    assert conclude(off)[1].reason.startswith("nothing to tell: the warm requests were not seen to reuse anything")


@pytest.mark.parametrize(("again_s", "again", "right"), [(SLOW, 0, "not_reused"), (FAST, 560, "reused")])
def test_an_eviction_is_judged_by_the_first_prompt_after_its_competitors(again_s, again, right: str) -> None:
    group = {"cold": SLOW, "warm": FAST, "competing": SLOW, "again": again_s}
    cached = {"cold": 0, "warm": 560, "competing": 0, "again": again}
    assert word(made(group, experiment=EVICTION, cached=cached)) == right
    assert word(made(group, group, group, experiment=EVICTION)) == right


def test_usage_and_timings_that_contradict_each_other_leave_the_verdict_to_the_clock() -> None:
    told, verdict = conclude(made(ON, ON, ON, cached=HITS, timings={"cache_n": 0, "prompt_n": 600}))
    assert told["cached_tokens"].supports is None
    assert "usage says 560 and timings.cache_n 0" in told["cached_tokens"].why
    assert verdict.word == "reused"


def test_counters_without_a_word_from_the_answers_are_a_signal_of_their_own() -> None:
    deltas = {name: CounterDelta(hits, 600) for name, hits in HITS.items()}
    told, verdict = conclude(made(ON, watch=Watch(deltas, why="")))
    assert (told["cached_tokens"].value, told["counters"].value, verdict.word) == (None, 560, "reused")


def test_three_signals_stand_side_by_side_when_counters_stay_at_nothing_though_the_cache_works() -> None:
    """MT-10: 5.5 s become 0.8 s, hits stay 0, usage says nothing."""
    times = {"cold": 5.5, "warm": 0.8, "control": 5.4}
    deltas = {name: CounterDelta(0, 600) for name in times}
    _, verdict = conclude(made(times, times, times, watch=Watch({n: CounterDelta(0, 1800) for n in deltas}, why="")))
    assert verdict.word == "inconclusive"
    assert verdict.reason.startswith("the signals disagree: clock")


def test_and_the_reverse_is_told_too() -> None:
    """MT-10: counts that say reused beside equal times."""
    told, verdict = conclude(made(OFF, OFF, OFF | {"short": FAST}, cached=HITS))
    assert (told["clock"].supports, told["cached_tokens"].supports) == ("not_reused", "reused")
    assert verdict.word == "inconclusive" and "the signals disagree" in verdict.reason
