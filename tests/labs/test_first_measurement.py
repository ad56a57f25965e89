"""`make measure`, on the tiny model."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from labbook.book import Labbook
from labbook.errors import LabbookError
from labs.kit.parameters import checkout

SCRIPT = checkout() / "scripts" / "first-measurement.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("first_measurement", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True)


def test_the_cold_and_warm_pair_is_the_last_record_and_its_figure_is_named(tmp_path: Path) -> None:
    book = tmp_path / "labbook.md"
    book.write_text('My notes.\n{"lab": "mine"}\n', encoding="utf-8")
    ended = run("--model", "tiny", "--prefix-words", "60", "--labbook", str(book))
    assert ended.returncode == 0, ended.stderr
    mine, pair = Labbook(book).records(strict=True)
    assert mine == {"lab": "mine"}
    assert (pair["experiment"], pair["model"], pair["label"]) == ("cold_warm", "tiny", "first measurement")
    assert pair["signals"]["cached_tokens"]["supports"] == pair["signals"]["counters"]["supports"] == "reused"
    warm = [request["cached_tokens"] for request in pair["requests"] if request["phase"] == "warm"]
    assert pair["cache_metrics_delta"]["phases"]["warm"]["hits_tokens"] == sum(warm) > 0
    figure = tmp_path / "labbook-figures" / "002.png"
    assert figure.is_file() and str(figure) in ended.stdout
    sentence = figure.with_suffix(".txt").read_text(encoding="utf-8").splitlines()[0]
    assert sentence in ended.stdout and f"verdict: {pair['verdict']}" in ended.stdout


def test_an_engine_that_does_not_start_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    ended = run("--model", "no-such-model", "--labbook", str(tmp_path / "labbook.md"))
    assert ended.returncode == 1
    assert "no-such-model" in ended.stderr and "Traceback" not in ended.stderr
    assert not (tmp_path / "labbook.md").exists()


def test_a_labbook_in_a_missing_folder_is_refused_before_the_engine_starts(tmp_path: Path) -> None:
    ended = run("--labbook", str(tmp_path / "missing" / "labbook.md"))
    assert ended.returncode == 2
    assert "does not exist" in ended.stderr and "loading" not in ended.stderr


def test_the_first_figure_of_a_new_labbook_is_number_one(script: ModuleType, tmp_path: Path) -> None:
    assert script.next_figure(tmp_path / "labbook.md") == tmp_path / "labbook-figures" / "001.png"


def test_a_folder_in_the_place_of_the_labbook_is_refused(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(LabbookError, match="is a folder"):
        script.next_figure(tmp_path)


def test_a_second_measurement_waits_for_the_first_and_says_so(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path / "home"))
    command = [sys.executable, str(SCRIPT), "--model", "no-such-model", "--labbook", str(tmp_path / "labbook.md")]
    with script.only_one_at_a_time():
        second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        assert second.stderr.readline() == "another measurement runs here, waiting\n"
        assert second.poll() is None
    _, said = second.communicate()
    assert second.returncode == 1
    assert "no-such-model" in said


def test_one_measurement_after_the_other_does_not_wait(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path / "home"))
    for _ in range(2):
        with script.only_one_at_a_time():
            assert (tmp_path / "home" / ".measure.lock").is_file()
    assert capsys.readouterr().err == ""


def test_a_home_that_cannot_be_written_stops_no_measurement(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path / "file" / "home"))
    with script.only_one_at_a_time():
        pass


@pytest.mark.parametrize("name", ["labbook/", "/dev/full"])
def test_a_place_that_takes_no_labbook_is_refused_before_the_wait(
    script: ModuleType, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with script.only_one_at_a_time():
        ended = run("--labbook", name)
    assert ended.returncode == 2
    assert "waiting" not in ended.stderr and "Traceback" not in ended.stderr
