"""scripts/run-notebooks.py: what it refuses, what it tells, and what it leaves behind when a notebook goes wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import psutil
import pytest

from labbook.book import Labbook
from labbook.errors import ServerError, UsageError
from labs.kit.contract.canonical import canonical_text
from labs.kit.parameters import Parameters, checkout
from scripts.run_notebooks import leftovers, supervise
from scripts.run_notebooks import settings as settings_module
from scripts.run_notebooks.choice import choose
from scripts.run_notebooks.report import as_object, as_text
from scripts.run_notebooks.run import FirstError, Run
from scripts.run_notebooks.secrets import secrets
from scripts.run_notebooks.settings import (
    injected,
    require_storable,
    settings,
    shown_base_url,
    with_model_of_server,
)
from scripts.run_notebooks.store import store

PARAMETERS = 'MODEL = "smollm2-135m"\nFAST = False\nBASE_URL = ""\nLABBOOK = ""'
PASSWORD, KEY = "correct-horse-battery", "sk-live-0123456789abcdef"
WITH_PASSWORD = f"http://me:{PASSWORD}@127.0.0.1:9/v1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notebooks"
    made.mkdir()
    return made


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_notebooks_script", checkout() / "scripts" / "run-notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_all(script: ModuleType, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`run_all("01", "-p", "MODEL=tiny")`: the exit status and the object of `--json`."""

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        places = ["--folder", str(folder), "--copies", str(tmp_path / "copies")]
        book = ["-p", f"LABBOOK={tmp_path / 'labbook.md'}"]
        status = script.main([*arguments, *places, *book, "--json"])
        printed = capsys.readouterr().out
        return status, json.loads(printed) if printed else {}

    return call


def notebook(folder: Path, name: str, *cells: str) -> Path:
    """A notebook with a parameters cell and these; a cell's id is `cell-1`, `cell-2`, ..."""
    made = nbformat.v4.new_notebook()
    made.cells.append(nbformat.v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}))
    made.cells += [nbformat.v4.new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(cells, start=1)]
    path = folder / f"{name}.ipynb"
    path.write_text(canonical_text(made), encoding="utf-8")
    return path


def printed_by(copy: Path, cell_id: str) -> str:
    (cell,) = [cell for cell in nbformat.read(copy, as_version=4).cells if cell.id == cell_id]
    return "".join(output.get("text", "") for output in cell.outputs)


# Which notebooks


@pytest.fixture
def three(folder: Path) -> list[Path]:
    return [notebook(folder, name) for name in ("00_first", "03_pages", "11_yours")]


@pytest.mark.parametrize("wanted", ["3", "03", "03_pages", "03_pages.ipynb", "notebooks/03_pages.ipynb"])
def test_a_notebook_has_a_number_a_name_and_a_file(wanted: str, folder: Path, three: list[Path]) -> None:
    assert choose(folder, [wanted]) == [three[1]]


@pytest.mark.parametrize("wanted", [["11", "00"], ["11 00"], ["11,0", "00_first"]])
def test_several_run_once_each_in_the_order_of_the_course(wanted: list[str], folder: Path, three: list[Path]) -> None:
    assert choose(folder, wanted) == [three[0], three[2]]


def test_without_a_name_all_run(folder: Path, three: list[Path]) -> None:
    assert choose(folder, []) == three == choose(folder, [" "])


@pytest.mark.parametrize("wanted", ["4", "pages", "03_page", "1"])
def test_an_unknown_notebook_is_refused_with_a_list_of_the_right_ones(
    wanted: str, folder: Path, three: list[Path]
) -> None:
    with pytest.raises(UsageError, match=rf"no notebook '{wanted}': choose from 00_first, 03_pages, 11_yours"):
        choose(folder, [wanted])


# With which parameters


def checked(*assignments: str, **environment: str) -> Parameters:
    return settings(assignments, environment)


def test_a_run_is_fast_and_on_the_default_model_unless_told_otherwise() -> None:
    chosen = checked()
    assert (chosen.fast, chosen.model, chosen.base_url) == (True, "smollm2-135m", "")


@pytest.mark.parametrize(
    ("text", "value"), [("false", False), ("0", False), ("no", False), ("True", True), ("1", True)]
)
def test_words_become_truth_values_where_papermill_would_pass_the_words_on(text: str, value: bool) -> None:
    assert injected(checked(f"FAST={text}"))["FAST"] is value


@pytest.mark.parametrize("text", ["FSAT=1", "fast", "SIZE=3", "=3", ""])
def test_an_unknown_parameter_is_refused_with_a_list_of_the_right_ones(text: str) -> None:
    with pytest.raises(UsageError, match=r"MODEL=\.\.\., FAST=\.\.\., BASE_URL=\.\.\., LABBOOK=\.\.\."):
        checked(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FAST=perhaps", "give True or False"),
        ("BASE_URL=127.0.0.1:8000", "has no scheme"),
        ("BASE_URL=http://127.0.0.1/v1/models", "use http://127.0.0.1/v1"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        checked(text)


def test_the_same_parameter_twice_with_two_values_is_refused() -> None:
    with pytest.raises(UsageError, match="FAST is given twice"):
        checked("FAST=true", "FAST=false")


def test_what_is_given_wins_over_the_environment_and_that_over_the_default() -> None:
    chosen = checked("MODEL=smollm2-135m", LAB_MODEL="tiny", LAB_FAST="0", LAB_LABBOOK="/books/mine.md")
    assert (chosen.model, chosen.fast, chosen.labbook) == ("smollm2-135m", False, Path("/books/mine.md"))
    assert checked(LAB_MODEL="tiny", LABBOOK="/books/learner.md").labbook == Path("/books/learner.md")


def test_a_url_with_a_password_is_neither_written_into_a_notebook_nor_shown() -> None:
    chosen = checked(f"BASE_URL={WITH_PASSWORD}")
    assert injected(chosen)["BASE_URL"] == "" and shown_base_url(chosen) == "http://127.0.0.1:9/v1"
    assert injected(checked("BASE_URL=http://127.0.0.1:9"))["BASE_URL"] == "http://127.0.0.1:9"


def test_keys_and_passwords_are_secrets_and_placeholders_are_words() -> None:
    found = secrets({"OPENAI_API_KEY": KEY, "HF_TOKEN": "none", "PIP_INDEX_URL": "https://ann:p%40ss@host/simple"}, "")
    assert KEY in found and "ann:p%40ss@" in found and "ann:p@ss@" in found
    assert "none" not in found
    assert PASSWORD in secrets({}, WITH_PASSWORD)


def test_on_a_server_the_only_model_that_it_lists_is_taken_and_a_named_one_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings_module, "only_model", lambda client: "the-only-one")
    url = "BASE_URL=http://127.0.0.1:9/v1"
    assert with_model_of_server(checked(url)).model == "the-only-one"
    assert with_model_of_server(checked(url, "MODEL=mine")).model == "mine"
    assert with_model_of_server(checked()).model == "smollm2-135m"


def test_a_server_that_tells_no_model_ends_the_run_before_the_first_notebook(
    run_all: Callable[..., Any], folder: Path
) -> None:
    notebook(folder, "01_well")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(ServerError, match="name its model with MODEL="):
        with_model_of_server(checked(f"BASE_URL=http://127.0.0.1:{port}/v1"))
    assert run_all("-p", f"BASE_URL=http://127.0.0.1:{port}/v1") == (1, {})


@pytest.mark.parametrize("text", ["MODEL=tiny", "FAST=false", "BASE_URL=http://127.0.0.1:9/v1"])
def test_the_committed_outputs_come_from_a_fast_run_of_the_default_model_alone(text: str) -> None:
    require_storable(checked())
    with pytest.raises(UsageError, match="--store takes a fast run"):
        require_storable(checked(text))


# Real runs, each with a kernel


def test_a_run_leaves_a_copy_a_record_and_no_secret(
    folder: Path, run_all: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "labbook.md"
    notebook(
        folder,
        "01_well",
        "from labs.kit.parameters import resolve\nparameters = resolve(MODEL, FAST, BASE_URL, LABBOOK)",
        "import os\nfrom labs.kit.session import Session\n"
        "Session('01_well', parameters).note('count', {'n': 1})\n"
        "print(type(FAST).__name__, FAST, MODEL, parameters.base_url, os.environ['TEST_API_KEY'])",
        "raise ValueError(f'cannot reach {parameters.base_url}')",
    )
    monkeypatch.setenv("TEST_API_KEY", KEY)
    monkeypatch.setenv("LAB_FAST", "1")
    status, told = run_all("-p", "MODEL=tiny", "--full", "-p", f"BASE_URL={WITH_PASSWORD}")
    (run,) = told["runs"]
    assert status == 1 and not told["ok"]
    assert printed_by(tmp_path / "copies" / "01_well.ipynb", "cell-2").startswith("bool False tiny http://***127.0.0.1")
    assert list(run["cell_seconds"]) == ["parameters", "cell-1", "cell-2", "cell-3"]
    assert (run["records_added"], run["records_added_by_experiment"]) == (1, {"count": 1})
    assert run["first_error"]["cell"] == "cell-3" and run["first_error"]["message"].startswith(
        "cannot reach http://***"
    )
    assert (run["mode"], run["parameters"]) == ("full", {"model": "tiny", "base_url": "http://127.0.0.1:9/v1"})
    _, recorded = Labbook(book).records(strict=True)
    assert recorded == run and recorded["experiment"] == "notebook-run"
    written = [book, *(tmp_path / "copies").iterdir()]
    assert not [path for path in written if PASSWORD in path.read_text() or KEY in path.read_text()]


def test_a_notebook_that_goes_wrong_does_not_keep_the_others_from_running(
    folder: Path, run_all: Callable[..., Any]
) -> None:
    notebook(folder, "01_dies", "print('here')", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    notebook(folder, "02_well", "print('well')")
    status, told = run_all("-p", "MODEL=tiny", "--timeout", "110")
    died, well = told["runs"]
    assert status == 1
    assert (died["status"], died["first_error"]["cell"]) == ("kernel died", "cell-2")
    assert (well["status"], well["first_error"]) == ("passed", None)


class WhenStarted(threading.Thread):
    """In the place of the clock: time is up as soon as the notebook has written a file."""

    started: Path

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.end = end
        self.is_cancelled = threading.Event()

    def run(self) -> None:
        while not self.is_cancelled.wait(0.05):
            if self.started.exists() and self.started.read_text():
                self.end()
                return

    def cancel(self) -> None:
        self.is_cancelled.set()


def test_a_notebook_whose_time_is_up_ends_with_all_that_it_started(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    path = notebook(
        folder,
        "01_hangs",
        "import subprocess, sys, time\nprint('before')",
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        f"open({str(started)!r}, 'w').write(str(child.pid))\ntime.sleep(600)",
    )
    monkeypatch.setattr(WhenStarted, "started", started, raising=False)
    monkeypatch.setattr(supervise.threading, "Timer", WhenStarted)
    begun: list[str] = []
    chosen = checked("MODEL=tiny", f"LABBOOK={tmp_path / 'labbook.md'}")
    run = supervise.run_notebook(path, tmp_path / "copy.ipynb", chosen, 600, begun.append)
    assert run.status == "timed out" and begun == ["parameters", "cell-1", "cell-2"]
    assert run.first_error == FirstError("cell-2", "TimeoutError", "it took more than 600 s")
    assert not _is_alive(int(started.read_text()))
    assert printed_by(tmp_path / "copy.ipynb", "cell-1") == "before\n"


def _is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_processes_of_another_run_are_left_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    sleepers = [
        subprocess.Popen(command, env={**os.environ, leftovers.MARKER: run_id}, stdout=subprocess.PIPE)
        for run_id in ("mine", "other")
    ]
    try:
        for sleeper in sleepers:
            assert sleeper.stdout is not None and sleeper.stdout.readline()
        assert leftovers.end_processes_of("mine") == 1
        assert sleepers[0].poll() is not None and sleepers[1].poll() is None
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
            assert sleeper.stdout is not None
            sleeper.stdout.close()


# Stored and told


def test_stored_outputs_are_those_of_the_run_without_the_cell_of_parameters(folder: Path, tmp_path: Path) -> None:
    path = notebook(folder, "01_stored", "print('one')", "2")
    executed = nbformat.read(path, as_version=4)
    tags = {"tags": ["injected-parameters"]}
    executed.cells.insert(1, nbformat.v4.new_code_cell("FAST = True", id="given", metadata=tags, execution_count=2))
    executed.cells[2].outputs = [nbformat.v4.new_output("stream", name="stdout", text="one\n")]
    executed.cells[3].outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=4)]
    executed.metadata["papermill"] = {"input_path": "/somewhere"}
    nbformat.write(executed, tmp_path / "executed.ipynb")
    store(tmp_path / "executed.ipynb", path)
    stored = nbformat.read(path, as_version=4)
    assert path.read_text(encoding="utf-8") == canonical_text(stored)
    assert [cell.id for cell in stored.cells] == ["parameters", "cell-1", "cell-2"]
    assert [cell.execution_count for cell in stored.cells] == [1, 2, 3]
    assert stored.cells[2].outputs[0].execution_count == 3
    assert [path.name for path in folder.iterdir()] == ["01_stored.ipynb"]


WELL = Run(
    "00_first", "passed", 20.0, {"imports": 1.0, "measure": 12.5, "quiz": 0.1}, None, ["prediction", "cold_warm"]
)
SLOW = Run("03_pages", "failed", 70.0, {"imports": 2.0}, FirstError("figure", "KeyError", "'pages'"), [])


def test_the_table_names_seconds_records_and_the_slowest_cells() -> None:
    text = as_text([WELL, SLOW], checked(LABBOOK="/l.md"), Path("build/notebooks"))
    first, second = text.splitlines()[1:3]
    assert first.split() == ["00_first", "passed", "20", "2", "measure", "12.5,", "imports", "1.0"]
    assert second.split()[:4] == ["03_pages", "failed", "70", "0"]
    assert "2 notebooks on the engine with smollm2-135m, fast mode: 90 s, 1 passed, 1 did not." in text
    assert "Slowest cells of all: 00 measure 12.5 s, 03 imports 2.0 s," in text
    assert "03_pages failed in cell figure: KeyError: 'pages'" in text
    assert "More than the 60 s that one may take on two idle CPU cores: 03_pages." in text


def test_the_object_has_a_record_for_each_run() -> None:
    told = as_object([WELL, SLOW], checked("FAST=no", LABBOOK="/l.md"), Path("build/notebooks"))
    assert (told["mode"], told["seconds"]) == ("full", 90.0)
    assert [run["records_added"] for run in told["runs"]] == [2, 0]
    assert told["runs"][0]["records_added_by_experiment"] == {"prediction": 1, "cold_warm": 1}


@pytest.mark.parametrize("arguments", [["99"], ["-p", "SIZE=3"], ["-p", "LABBOOK=/missing/labbook.md"]])
def test_wrong_usage_ends_with_status_2_before_anything_runs(
    arguments: Sequence[str], script: ModuleType, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook(folder, "01_well")
    assert script.main([*arguments, "--folder", str(folder), "--copies", str(tmp_path / "copies")]) == 2
    assert capsys.readouterr().err.startswith("run-notebooks: ")
    assert not list(tmp_path.glob("copies/*"))
