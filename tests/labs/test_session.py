from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labbook.errors import LabbookError
from labs.kit.parameters import Parameters
from labs.kit.predictions import Prediction, PredictionError
from labs.kit.session import Session


def predictions_in(session: Session) -> list[dict[str, Any]]:
    return [record for record in session.book.records(strict=True) if record["experiment"] == "prediction"]


def test_a_prediction_is_in_the_labbook_before_anything_is_measured(session: Session) -> None:
    session.predict("warm", "smaller", 0.5)
    (record,) = session.book.records(strict=True)
    assert record["experiment"] == "prediction" and record["notebook"] == "99_test"
    assert (record["topic"], record["direction"], record["ratio"]) == ("warm", "smaller", 0.5)


def test_the_outcome_says_when_it_was_predicted_and_repeats_the_prediction(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    session.judge(guess, [0.2], [1.0])
    predicted, outcome = session.book.records(strict=True)
    assert (outcome["predicted_at"], outcome["prediction_id"]) == (predicted["recorded_at"], predicted["id"])
    assert outcome["direction"] == "smaller" and outcome["verdict"] == "supported"


def test_a_revision_is_appended_names_what_it_replaces_and_is_the_one_that_is_judged(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    session.revise(guess, "larger", 2.0)
    session.revise(guess, "same", 1.0)
    outcome = session.judge(guess, [1.0], [1.0])
    assert outcome.verdict == "supported"
    first, second, third = predictions_in(session)
    assert [record["replaces"] for record in (first, second, third)] == [None, first["id"], second["id"]]
    assert session.records[-1]["prediction_id"] == third["id"]


def test_what_is_already_written_down_is_not_written_twice(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    session.revise(guess, "smaller", 0.5)
    assert len(session.records) == 1


def test_a_measurement_closes_its_prediction(session: Session) -> None:
    guess = session.predict("warm", "smaller", 0.5)
    with session.measuring(guess), pytest.raises(PredictionError, match="its measurement has begun"):
        session.revise(guess, "larger", 2.0)
    with pytest.raises(PredictionError, match="run its cell again"):
        session.revise(guess, "larger", 2.0)
    assert session.judge(guess, [0.2], [1.0]).prediction.direction == "smaller"


def test_running_the_prediction_cell_again_replaces_an_open_prediction_and_follows_a_measured_one(
    session: Session,
) -> None:
    session.predict("warm", "smaller", 0.5)
    second = session.predict("warm", "smaller", 0.4)
    session.judge(second, [0.4], [1.0])
    session.predict("warm", "smaller", 0.3)
    first, replacing, anew = predictions_in(session)
    assert (replacing["replaces"], anew["replaces"]) == (first["id"], None)


def test_a_placeholder_never_replaces_a_prediction_that_somebody_set(session: Session) -> None:
    guess = session.predict("a warm request, cache on", "smaller", 0.5)
    session.revise(guess, "smaller", 0.2)
    again = session.predict("a warm request, cache on", "smaller", 0.5)
    assert again is guess and again.prediction.ratio == 0.2
    session.judge(again, [0.2], [1.0])
    assert session.predict("a warm request, cache on", "smaller", 0.5).is_default


def test_what_a_notebook_came_with_is_nobodys_own_until_somebody_sets_it(session: Session) -> None:
    guess = session.predict("a warm request, cache on", "smaller", 0.5)
    assert guess.is_default and "not yet yours" in guess.sentence
    session.revise(guess, "smaller", 0.5)
    assert not guess.is_default
    assert [record["is_default"] for record in predictions_in(session)] == [True, False]
    session.judge(guess, [0.2], [1.0])
    assert session.records[-1]["is_default"] is False


def test_an_edited_cell_and_a_topic_of_ones_own_are_ones_own(session: Session) -> None:
    assert not session.predict("a warm request, cache on", "smaller", 0.3).is_default
    assert not session.predict("a warm request, cache on", "smaller", 0.5, is_mine=True).is_default
    assert not session.predict("something that no notebook asks", "smaller", 0.5).is_default


def test_a_prediction_that_was_not_written_down_first_is_neither_measured_nor_judged(session: Session) -> None:
    stranger: Any = Prediction("warm", "smaller", 0.5)
    with pytest.raises(PredictionError, match="not written down first"):
        session.judge(stranger, [0.2], [1.0])
    with pytest.raises(PredictionError, match="not written down first"), session.measuring(stranger):
        pytest.fail("measured without a prediction")
    assert not session.book.path.exists()


def test_a_refused_prediction_leaves_no_record(session: Session) -> None:
    with pytest.raises(PredictionError):
        session.predict("warm", "smaller", 2.0)
    assert not session.book.path.exists()


def test_the_summary_lists_only_the_records_of_this_run(session: Session) -> None:
    session.book.append({"lab": "older", "experiment": "older"})
    session.predict("warm", "smaller", 0.5)
    session.add({"experiment": "cold_warm", "label": "cache on"})
    assert session.summary().splitlines() == ["1. prediction: warm", "2. cold_warm: cache on"]


def test_a_labbook_that_cannot_be_written_is_told_before_the_notebook_starts(tmp_path: Path) -> None:
    with pytest.raises(LabbookError, match="does not exist"):
        Session("99_test", Parameters("tiny", True, "", tmp_path / "missing" / "labbook.md"))
