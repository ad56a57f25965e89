"""Notebook 08 beside a server that it did not start: no restart, and everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labbook.book import Labbook
from labs.kit.slot_server import SKIPPED

NOBODY = "http://127.0.0.1:9/v1"  # nothing listens there: the notebook must not even ask


@pytest.fixture(scope="module")
def labbook(tmp_path_factory: pytest.TempPathFactory) -> Labbook:
    return Labbook(tmp_path_factory.mktemp("notebook") / "labbook.md")


@pytest.fixture(scope="module")
def printed(labbook: Labbook, execute_notebook: Callable[..., dict[str, str]]) -> dict[str, str]:
    return execute_notebook("08_slots_and_files", LAB_BASE_URL=NOBODY, LAB_LABBOOK=str(labbook.path))


def test_the_restart_is_skipped_with_its_reason(printed: dict[str, str]) -> None:
    for name in ("ask", "save", "go-on", "cold", "count-restored"):
        assert printed[name].strip() == SKIPPED
    assert printed["restored"].strip() in ("", "None")


def test_the_file_is_opened_all_the_same_and_refused_where_it_must(printed: dict[str, str]) -> None:
    assert "model: tiny" in printed["header"]
    assert "every byte is accounted for: yes" in printed["sizes"]
    assert printed["refusals"].count("refused, nothing has changed") == 7
    assert "the same as ours: yes" in printed["export"]


def test_what_was_not_measured_has_no_record(printed: dict[str, str], labbook: Labbook) -> None:
    kinds = [record["experiment"] for record in labbook.records(strict=True)]
    assert kinds == ["prediction", "prediction", "slot-file", "refused-restores", "mlx-lm-files"]
