"""Notebook 00 on a server that it did not start. The run on its own engine is nbval's."""

from __future__ import annotations

import pytest

from labbook.book import Labbook
from labs.kit.serving import running_server
from tests.notebooks.conftest import ExecuteNotebook


@pytest.fixture(scope="module")
def labbook(tmp_path_factory: pytest.TempPathFactory) -> Labbook:
    return Labbook(tmp_path_factory.mktemp("notebook") / "labbook.md")


@pytest.fixture(scope="module")
def executed(execute_notebook: ExecuteNotebook, labbook: Labbook) -> dict[str, str]:
    """What each cell printed, by the cell's id."""
    with running_server("tiny", is_quiet=True) as server:
        return execute_notebook("00_first_measurement", LAB_BASE_URL=server.base_url, LAB_LABBOOK=str(labbook.path))


def test_the_given_server_is_measured(executed: dict[str, str], labbook: Labbook) -> None:
    (pair,) = labbook.select(experiment="cold_warm")
    assert pair["model"] == "tiny" and pair["label"] == "cache on"
    assert pair["signals"]["counters"]["supports"] == "reused"


def test_turning_the_cache_off_is_skipped_with_its_reason(executed: dict[str, str]) -> None:
    assert executed["count-off"].startswith("skipped: the notebook cannot turn off the cache of a server")


def test_predictions_stand_before_the_measurement_and_outcomes_after(
    executed: dict[str, str], labbook: Labbook
) -> None:
    kinds = [record["experiment"] for record in labbook.records(strict=True)]
    assert kinds == ["prediction", "cold_warm", "outcome", "prediction"]
    assert len(executed["records"].splitlines()) == len(kinds)


def test_a_clock_in_front_restores_nothing_and_one_at_the_end_nearly_everything(executed: dict[str, str]) -> None:
    assert executed["clock-in-front"].count("'0 of ") == 3
    assert "'0 of " not in executed["clock-at-end"]
