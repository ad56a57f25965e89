from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def project() -> dict[str, Any]:
    """The `[project]` table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def setup_environment() -> ModuleType:
    """scripts/setup-environment.py, loaded anew for each test so that its parts can be replaced."""
    spec = importlib.util.spec_from_file_location("setup_environment", ROOT / "scripts" / "setup-environment.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["setup_environment"] = module
    spec.loader.exec_module(module)
    return module
