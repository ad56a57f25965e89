"""The timeline of a burst from hand-made events, its drawing, its figure and its widget, without a browser."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from labs.kit.burst import Burst, Happening, Track
from labs.kit.figures.bursts import burst_bars
from labs.kit.session import Session
from labs.kit.timeline import Segment, Timeline, timeline_of
from labs.kit.timeline_svg import ticks, timeline_svg
from labs.kit.timeline_view import timeline_view
from minivllm.request import RequestMetrics

STEP_ENDS_S = (0.2, 0.3, 0.4, 0.45, 0.5)


def track(name: str, cached: int, computed: int, *events: tuple[int, str]) -> Track:
    happenings = tuple(Happening(step, 0.0, event, 0) for step, event in events)
    return Track(name, happenings, RequestMetrics(cached_tokens=cached, computed_tokens=computed))


LEADER = track(
    "request 1", 0, 40,
    (0, "queued"), (1, "admitted"), (1, "prefill"), (2, "prefill"), (2, "first_token"), (4, "ended:length"),
)  # fmt: skip
FOLLOWER = track(
    "request 2", 32, 8,
    (0, "queued"), (2, "released"), (3, "admitted"), (3, "prefill"), (3, "first_token"), (5, "ended:length"),
)  # fmt: skip


@pytest.fixture
def timeline() -> Timeline:
    return timeline_of("early", Burst((LEADER, FOLLOWER), STEP_ENDS_S))


def test_each_request_is_in_one_state_in_each_step(timeline: Timeline) -> None:
    leader, follower = timeline.rows
    assert leader.segments == (Segment("prefill", 1, 2), Segment("decode", 3, 4))
    assert follower.segments == (Segment("waiting", 1, 2), Segment("prefill", 3, 3), Segment("decode", 4, 5))
    assert (leader.released_after, follower.released_after) == (None, 2)


def test_the_text_shows_a_letter_for_each_step_and_the_release_between_two(timeline: Timeline) -> None:
    assert timeline.as_text().splitlines() == [
        "early: 5 steps",
        "step               5",
        "request 1  P P D D .",
        "request 2  W W>P D D",
    ]


def test_a_segment_lies_between_the_ends_of_its_steps(timeline: Timeline) -> None:
    waiting, _, decode = timeline.rows[1].segments
    assert timeline.span(waiting, "steps") == (0, 2) and timeline.span(waiting, "seconds") == (0, 0.3)
    assert timeline.span(decode, "seconds") == (0.4, 0.5)
    assert (timeline.length("steps"), timeline.length("seconds")) == (5, 0.5)


def test_the_sentence_says_what_the_bars_show(timeline: Timeline) -> None:
    assert timeline.sentences("steps")[1] == (
        "request 2: waiting in steps 1 to 2, released, prefill in step 3, decode in steps 4 to 5."
    )
    assert "waiting from 0 to 300 ms, released" in timeline.sentences("seconds")[1]


def test_a_step_between_two_chunks_is_one_of_waiting() -> None:
    events = (
        (0, "queued"), (1, "admitted"), (1, "prefill"), (3, "prefill"), (3, "first_token"), (3, "ended:length"),
    )  # fmt: skip
    row = timeline_of("page", Burst((track("request 1", 0, 40, *events),), STEP_ENDS_S)).rows[0]
    assert [part.state for part in row.segments] == ["prefill", "waiting", "prefill"]


def test_who_comes_late_has_no_state_before() -> None:
    late = track("request 1", 0, 8, (2, "queued"), (3, "prefill"), (3, "first_token"), (4, "ended:stop"))
    timeline = timeline_of("off", Burst((late,), STEP_ENDS_S))
    assert timeline.as_text().endswith("request 1  . . P D .")


def test_a_request_without_a_first_token_is_refused() -> None:
    with pytest.raises(ValueError, match="request 1 ended without a first token: queued, ended:abort"):
        timeline_of("off", Burst((track("request 1", 0, 0, (0, "queued"), (1, "ended:abort")),), STEP_ENDS_S))


@pytest.mark.parametrize("unit", ["steps", "seconds"])
def test_the_drawing_is_well_formed_and_its_label_is_its_text(timeline: Timeline, unit: str) -> None:
    drawing = ElementTree.fromstring(timeline_svg(timeline, unit, 10.0))  # type: ignore[arg-type]
    assert drawing.get("role") == "img"
    assert str(drawing.get("aria-label")).endswith(" ".join(timeline.sentences(unit)))  # type: ignore[arg-type]
    bars = [one for one in drawing.iter() if one.get("class") in ("waiting", "prefill", "decode") and len(one)]
    assert len(bars) == 5


def test_ticks_are_few_and_whole_when_steps_are_counted() -> None:
    assert ticks(16, "steps") == [0, 2, 4, 6, 8, 10, 12, 14, 16]
    assert ticks(0.35, "seconds") == pytest.approx([0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35])
    assert ticks(5, "steps") == [0, 1, 2, 3, 4, 5]


def test_the_figure_says_steps_and_tokens(timeline: Timeline) -> None:
    drawn = burst_bars("Two at once", [timeline], "n = 1")
    assert drawn.sentence == ("Two at once: early, 5 steps, first tokens in steps 2 to 3, 48 prompt tokens computed.")
    assert drawn.png().startswith(b"\x89PNG")


def test_the_widget_prints_its_twin_and_notes_what_is_chosen(
    timeline: Timeline, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    other = timeline_of("late", Burst((LEADER,), STEP_ENDS_S))
    box = timeline_view([timeline, other], session)
    assert "request 2  W W>P D D" in capsys.readouterr().out
    assert "early, in engine steps" in box.chart.value
    box.policy.value = "late"
    box.unit.value = "seconds"
    assert "late, in seconds" in box.chart.value
    assert [record["label"] for record in session.records] == ["late, in engine steps", "late, in seconds"]
