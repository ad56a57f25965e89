from __future__ import annotations

import pytest

from labs.kit.field import Report
from labs.kit.predictions import Prediction

SOONER = Report("sooner.", Prediction("time", "smaller", 0.6, smallest_effect=0.1))
NO_SOONER = Report("no sooner.", Prediction("time", "smaller", 0.9, smallest_effect=0.05), confirmed_by="refuted")


@pytest.mark.parametrize(
    ("report", "measured", "verb"),
    [
        (SOONER, [0.5, 0.6], "agrees"),
        (SOONER, [1.1, 1.2], "disagrees"),
        (SOONER, [0.5, 1.1], "cannot tell, its values spread too far"),
        (NO_SOONER, [1.1, 1.2], "agrees"),
        (NO_SOONER, [0.5, 0.6], "disagrees"),
        (NO_SOONER, [0.9, 1.0], "cannot tell, its values spread too far"),
    ],
)
def test_a_report_is_confirmed_denied_or_left_open(report: Report, measured: list[float], verb: str) -> None:
    published, here = report.compare(measured, [1.0]).split("\n", maxsplit=1)
    assert published == f"Published: {report.text}"
    assert here.startswith(f"This machine {verb}: ")
