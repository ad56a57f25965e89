"""The commands start without anything heavy, whatever is installed: what `--help` imports decides how long it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"matplotlib", "numpy", "mlx", "mlx_lm", "transformers", "requests", "urllib3", "prometheus_client", "tqdm"}
OURS = {"minivllm", "labs"}
COMMANDS = ("append", "list", "show", "plot", "compare", "check", "export", "report", "tap")


def imported_by(*arguments: str) -> set[str]:
    """The top-level modules that a Python process imports, as `-X importtime` tells them on standard error."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return {name.strip().partition(".")[0] for name in re.findall(r"^import time:.*\|(.+)$", done.stderr, re.MULTILINE)}


@pytest.mark.parametrize("arguments", [("labbook.measure_cli", "--help"), ("labbook.cli", "--help")])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    modules = imported_by(*arguments)
    assert "labbook" in modules and modules & (HEAVY | OURS) == set()


def test_listing_and_checking_records_import_nothing_heavy(tmp_path: Path) -> None:
    book = tmp_path / "labbook.md"
    book.write_text('{"id": 1}\n', encoding="utf-8")
    for command in ("list", "show", "check", "export"):
        assert imported_by("labbook.cli", command, "--labbook", str(book)) & (HEAVY | OURS) == set()


def test_every_command_offers_json(capsys: pytest.CaptureFixture[str]) -> None:
    from labbook.cli import main

    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert set(COMMANDS) <= set(listed)
    for command in listed:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0 and "--json" in capsys.readouterr().out, command


def test_the_package_imports_nothing_of_the_engine_or_the_course() -> None:
    for path in (ROOT / "labbook").rglob("*.py"):
        assert not re.search(
            r"^\s*(from|import) (minivllm|labs|mlx)\b", path.read_text(encoding="utf-8"), re.MULTILINE
        ), path
