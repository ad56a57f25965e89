"""What every test starts from: no test appends to the learner's labbook."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def labbook_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("LABBOOK")
    os.environ["LABBOOK"] = str(tmp_path_factory.mktemp("labbook") / "labbook.md")
    yield
    if before is None:
        del os.environ["LABBOOK"]
    else:
        os.environ["LABBOOK"] = before
