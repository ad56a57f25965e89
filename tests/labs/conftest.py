from __future__ import annotations

from pathlib import Path

import pytest

from labs.kit.parameters import Parameters
from labs.kit.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session("99_test", Parameters("tiny", True, "", tmp_path / "labbook.md"))
