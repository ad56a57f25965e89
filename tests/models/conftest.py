from __future__ import annotations

from pathlib import Path

import pytest

import minivllm.backend  # noqa: F401  before any test file imports mlx_lm: it loads the BLAS first


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A MINIVLLM_HOME of this test's own."""
    home = tmp_path / "home"
    monkeypatch.setenv("MINIVLLM_HOME", str(home))
    return home
