from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labbook.book import Labbook
from labs.kit.calibration import Calibration, calibration, calibration_of
from labs.kit.figures.calibration import calibration_figure, calibration_sentence
from labs.kit.parameters import checkout
from labs.kit.session import Session

EXAMPLE = checkout() / "labs" / "kit" / "examples" / "calibration.md"


def outcome(predicted: float, measured: float, verdict: str = "supported", **fields: Any) -> dict[str, Any]:
    return {
        "lab": "course",
        "experiment": "outcome",
        "notebook": "99_test",
        "topic": f"from {predicted} to {measured}",
        "direction": "smaller",
        "ratio": predicted,
        "measured_ratio": measured,
        "verdict": verdict,
        "is_default": False,
        "recorded_at": "2026-01-01T00:00:00+00:00",
        **fields,
    }


def test_directions_are_counted_among_the_decided_and_factors_by_their_median() -> None:
    """Factors 2, 4 and 1.25: the median is 2. One of two decided directions was right."""
    found = calibration(
        [outcome(0.5, 0.25), outcome(0.2, 0.8, "refuted"), outcome(0.5, 0.4, "inconclusive"), {"lab": "other"}]
    )
    score = found.score
    assert (score.num, score.right, score.wrong, score.undecided) == (3, 1, 1, 1)
    assert score.factor == pytest.approx(2.0)
    assert score.sentence == (
        "direction right in 1 of 2, 1 left open by the measurement; sizes off by a factor of 2 at the median"
    )


def test_what_nobody_set_is_counted_apart_and_scored_nowhere() -> None:
    unknown = outcome(0.5, 0.5)
    del unknown["is_default"]  # a labbook from before predictions said whose they are
    found = calibration([outcome(0.5, 0.5), outcome(0.1, 9.0, "refuted", is_default=True), unknown])
    assert (len(found.own), found.num_defaults, found.score.wrong) == (1, 2, 0)


def test_a_prediction_that_was_judged_twice_counts_once_as_it_was_judged_last() -> None:
    found = calibration([outcome(0.5, 0.9, prediction_id="a"), outcome(0.5, 0.5, prediction_id="a"), outcome(0.4, 0.4)])
    assert [one.measured for one in found.own] == [0.5, 0.4]


def test_of_a_topic_the_last_prediction_is_shown_and_all_of_them_are_scored() -> None:
    found = calibration([outcome(0.1, 0.4, topic="warm"), outcome(0.4, 0.4, topic="warm")])
    assert found.latest_by_topic["warm"].predicted == 0.4
    assert found.score.num == 2


def test_halves_show_whether_later_predictions_are_better() -> None:
    assert calibration([outcome(0.5, 0.5)] * 3).halves() is None
    earlier, later = calibration([outcome(0.1, 0.4), outcome(0.1, 0.4), outcome(0.4, 0.4), outcome(0.4, 0.4)]).halves()  # type: ignore[misc]
    assert (earlier.factor, later.factor) == (pytest.approx(4.0), pytest.approx(1.0))


@pytest.mark.parametrize(
    "changed",
    [
        {"ratio": "half"},
        {"ratio": 0},
        {"ratio": True},
        {"measured_ratio": None},
        {"verdict": "reused"},
        {"direction": "up"},
        {"topic": 7},
        {"notebook": None},
    ],
)
def test_a_record_that_is_no_whole_outcome_is_passed_over(changed: dict[str, Any]) -> None:
    assert calibration([outcome(0.5, 0.5, **changed)]).judged == ()


def test_a_measured_zero_is_right_or_wrong_and_has_no_factor() -> None:
    found = calibration([outcome(0.5, 0.0)])
    assert found.score.right == 1 and found.score.factor is None
    assert "factor" not in calibration_sentence(found)
    assert b"PNG" in calibration_figure(found).png()[:8]


def test_an_empty_labbook_and_one_of_placeholders_alone_have_a_figure_and_a_sentence(tmp_path: Path) -> None:
    missing = calibration_of(Labbook(tmp_path / "labbook.md"))
    defaults = calibration([outcome(0.5, 0.5, is_default=True)])
    for found, counted in ((missing, "0 that nobody set are"), (defaults, "1 that nobody set is")):
        assert counted in found.as_text()
        assert calibration_figure(found).sentence == (
            "Predicted against measured ratio of 0 topics: no prediction of your own yet."
        )


def test_what_a_session_writes_is_what_is_read(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    session.judge(guess, [0.25], [1.0])
    (one,) = calibration_of(session.book).own
    assert (one.topic, one.predicted, one.measured, one.factor, one.verdict) == ("warm", 0.5, 0.25, 2.0, "supported")


def test_the_example_labbook_holds_every_case_and_says_that_it_is_invented() -> None:
    found: Calibration = calibration_of(Labbook(EXAMPLE))
    assert "Invented" in EXAMPLE.read_text(encoding="utf-8")
    assert (len(found.own), found.num_defaults, len(found.latest_by_topic)) == (8, 1, 7)
    assert {one.verdict for one in found.own} == {"supported", "refuted", "inconclusive"}
    assert calibration_figure(found).sentence == (
        "Predicted against measured ratio of 7 topics: direction right in 5 of 7, 1 left open by the measurement; "
        "sizes off by a factor of 2 at the median; furthest off is a second request, cache off, by a factor of 2."
    )
    assert [*found.by_notebook()] == ["00_first_measurement", "01_example", "02_example", "03_example"]
