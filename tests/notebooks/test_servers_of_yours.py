"""Notebooks 02 and 11 on a real `mlx_lm.server` that they did not start, which has no counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labbook.book import Labbook
from labs.kit.mlx_serving import running_mlx_server
from labs.kit.serving import Server


ExecuteNotebook = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_mlx_server("tiny") as running:
        yield running


def environment(server: Server, labbook: Labbook) -> dict[str, str]:
    return {"LAB_BASE_URL": server.base_url, "LAB_MODEL": str(server.model), "LAB_LABBOOK": str(labbook.path)}


def test_evidence_is_collected_from_two_signals_where_there_are_no_counters(
    server: Server, tmp_path: Path, execute_notebook: ExecuteNotebook
) -> None:
    labbook = Labbook(tmp_path / "labbook.md")
    said = execute_notebook("02_cold_and_warm", **environment(server, labbook))
    assert said["fresh-counters"].startswith("no counters")
    assert "counters: this server has none" in said["count-on"]
    assert "the control is judged: not_reused" in said["count-control"]
    assert said["verdict-stale"].startswith("contaminated: the cold request was warm")
    assert said["count-off"].startswith("skipped: the notebook cannot turn off the cache")
    assert said["count-growth"].splitlines()[1].startswith("warm: computed tokens hardly change")
    kinds = [record["experiment"] for record in labbook.records(strict=True)]
    assert kinds.count("prediction") == kinds.count("outcome") == 3
    assert {"first-requests", "cold_warm", "control", "answer-lengths", "growth"} <= set(kinds)


def test_the_record_of_a_server_of_yours_fills_the_form(
    server: Server, tmp_path: Path, execute_notebook: ExecuteNotebook
) -> None:
    labbook = Labbook(tmp_path / "labbook.md")
    said = execute_notebook("11_your_own_server", **environment(server, labbook))
    assert "counters, warm phase:      not told" in said["own-form"]
    assert "started with:              my own command" in said["own-form"]
    (own,) = labbook.select(label="my own server")
    assert own["signals"]["cached_tokens"]["supports"] == "reused"
    assert all(
        "did not run" in record["origin"] for record in labbook.records() if "(double)" in str(record.get("engine"))
    )
