"""Notebook 07 on a model whose heads take groups of 32, and beside a server that shows no arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def printed(
    tmp_path_factory: pytest.TempPathFactory, execute_notebook: Callable[..., dict[str, str]]
) -> dict[str, str]:
    labbook: Path = tmp_path_factory.mktemp("notebook") / "labbook.md"
    nobody = "http://127.0.0.1:9/v1"  # nothing listens there: the notebook must not even ask
    return execute_notebook("07_kv_quantization", LAB_MODEL="tiny", LAB_BASE_URL=nobody, LAB_LABBOOK=str(labbook))


def test_groups_fit_the_heads_and_the_arrays_are_what_was_computed(printed: dict[str, str]) -> None:
    assert "2 KV heads of 32 numbers, in groups of 32" in printed["open-engines"]
    assert "arithmetic and arrays agree: yes" in printed["arrays"]


def test_a_server_is_left_alone_and_the_notebook_says_why(printed: dict[str, str]) -> None:
    assert "BASE_URL is set" in printed["open-engines"]


def test_the_control_and_the_break_do_not_hang_on_the_model(printed: dict[str, str]) -> None:
    assert "32 bits: mean KL below 1e-09 nats: yes" in printed["thresholds"]
    assert "read back: 64" in printed["nan"]
    assert "the engine ends the request with 'error'" in printed["nan"]
