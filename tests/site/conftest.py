from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.small_checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout").mkdir()
    return Checkout(tmp_path / "checkout")
