from __future__ import annotations

from pathlib import Path

import pytest

from labbook.errors import LabbookError
from labs.kit.parameters import Parameters
from labs.kit.predictions import Prediction, PredictionError
from labs.kit.session import Session


def test_a_prediction_is_in_the_labbook_before_anything_is_measured(session: Session) -> None:
    session.predict("warm", "smaller", 0.5)
    (record,) = session.book.records(strict=True)
    assert record["experiment"] == "prediction" and record["notebook"] == "99_test"
    assert (record["topic"], record["direction"], record["ratio"]) == ("warm", "smaller", 0.5)


def test_the_outcome_says_when_it_was_predicted_and_repeats_the_prediction(session: Session) -> None:
    prediction = session.predict("warm", "smaller", 0.5)
    session.judge(prediction, [0.2], [1.0])
    predicted, outcome = session.book.records(strict=True)
    assert outcome["predicted_at"] == predicted["recorded_at"]
    assert outcome["direction"] == "smaller" and outcome["verdict"] == "supported"


def test_a_prediction_that_was_not_written_down_first_is_not_judged(session: Session) -> None:
    with pytest.raises(PredictionError, match="not written down first"):
        session.judge(Prediction("warm", "smaller", 0.5), [0.2], [1.0])
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
