"""Notebook 05 on a real mlx_lm.server that it did not start: no metrics, no /tokenize. The usual run is nbval's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labbook.book import Labbook
from labs.kit.mlx_serving import running_mlx_server

@pytest.fixture(scope="module")
def labbook(tmp_path_factory: pytest.TempPathFactory) -> Labbook:
    return Labbook(tmp_path_factory.mktemp("notebook") / "labbook.md")


@pytest.fixture(scope="module")
def executed(labbook: Labbook, execute_notebook: Callable[..., dict[str, str]]) -> dict[str, str]:
    """What each cell printed, by the cell's id."""
    with running_mlx_server("tiny") as server:
        place = {"LAB_BASE_URL": server.base_url, "LAB_MODEL": str(server.model), "LAB_LABBOOK": str(labbook.path)}
        return execute_notebook("05_prompt_arrangement", **place)


def test_the_tokenizer_beside_the_served_model_counts_as_the_server_does(executed: dict[str, str]) -> None:
    assert executed["renderer"].startswith("tokens by the tokenizer of tiny-v1")
    assert "5 of 5 prompts have as many tokens here as on the server." in executed["explain-all"]


def test_every_repair_wins_on_this_server_too(executed: dict[str, str], labbook: Labbook) -> None:
    (record,) = labbook.select(experiment="prompt-arrangement")
    for before, after in zip(record["before"], record["after"], strict=True):
        assert before["cached_tokens"] < 128 < after["cached_tokens"], after["name"]


def test_the_inserted_clock_is_found_in_the_captured_bodies(executed: dict[str, str], labbook: Labbook) -> None:
    (record,) = labbook.select(experiment="inserted-clock")
    assert record["cause"] == "clock" and record["cached_tokens"] < record["saved_could_reuse"]
    assert not list(labbook.path.parent.glob("labbook-tap/*.jsonl"))
