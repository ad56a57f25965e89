"""The two commands as a person runs them: output, exit status, and what is written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.measure_cli import main as measure

ROOT = Path(__file__).parents[2]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labbook:
    monkeypatch.setenv("LABBOOK", str(tmp_path / "labbook.md"))
    return Labbook(tmp_path / "labbook.md")


def quick(state, *more: str) -> list[str]:
    return ["--base-url", state.url, "--prefix-words", "60", "--timeout", "10", *more]


def test_a_measurement_is_reported_recorded_and_exits_0(serve, book, capsys) -> None:
    assert measure(quick(serve(), "--label", "mine")) == 0
    out, err = capsys.readouterr()
    (record,) = book.records(strict=True)
    assert record["verdict"] == "reused"
    lines = out.splitlines()
    assert lines[0].endswith("model m1, lab")
    assert out.index("time to first token") < out.index("signal") < out.index("verdict: reused.")
    assert lines[-1] == f"record appended to {book.path}"
    assert err == ""  # no progress when stderr is no terminal


def test_json_puts_only_the_record_on_standard_output(serve, book, capsys) -> None:
    assert measure(quick(serve(), "--json")) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == book.records()[-1]
    assert "record appended" in err


def test_an_expected_verdict_exits_0_and_another_3_with_the_record_kept(serve, book, capsys) -> None:
    assert measure(quick(serve(cache=False), "--expect", "not_reused")) == 0
    assert measure(quick(serve(cache=False), "--expect", "reused")) == 3
    assert "expected the verdict reused, measured not_reused" in capsys.readouterr().err
    assert len(book.records()) == 2


def test_a_server_that_cannot_be_measured_exits_1_and_writes_nothing(serve, book, capsys) -> None:
    state = serve(answer=(200, "text/html", b"<title>nginx</title>"))
    assert measure(quick(state, "--figure", str(book.path.with_name("f.png")))) == 1
    out, err = capsys.readouterr()
    assert out == "" and "HTML page titled 'nginx'" in err and "Traceback" not in err
    assert list(book.path.parent.iterdir()) == []


def test_a_server_that_is_not_there_exits_1(book, capsys) -> None:
    assert measure(["--base-url", "http://127.0.0.1:9/v1", "--timeout", "2"]) == 1
    assert "Is the server running there?" in capsys.readouterr().err
    assert not book.path.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--base-url", "localhost:8000"],
        ["--base-url", "http://h/v1?x=1"],
        ["--base-url", ""],
        ["--base-url", "http://h", "--questions", "0"],
        ["--base-url", "http://h", "--prefix-words", "-1"],
        ["--base-url", "http://h", "--timeout", "nan"],
        ["--base-url", "http://h", "--prefix-file", "/nowhere/at.txt"],
        ["--base-url", "http://h", "--api-key-env", "SURELY_NOT_SET"],
        ["--base-url", "http://h", "--figure", "a.jpg"],
        ["--base-url", "http://h", "--labbook", "/nowhere/labbook.md"],
        ["--base-url", "http://h", "--figure", "/no/f.png"],
    ],
)
def test_wrong_usage_exits_2_with_a_sentence(arguments: list[str], book, capsys) -> None:
    assert measure(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("measure-prefix-cache: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--base-url", "http://h", "--expect", "fast"],
        ["--base-url", "http://h", "--nonsense"],
        ["--base-url", "http://h", "--prefix-words", "9", "--prefix-file", "x"],
        ["--base-url", "http://h", "--seed", "x"],
    ],
)
def test_arguments_that_cannot_be_read_exit_2(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        measure(arguments)
    assert ended.value.code == 2


def test_several_models_without_a_choice_exit_2(serve, book, capsys) -> None:
    assert measure(quick(serve(models=("a", "b")))) == 2
    assert "choose one with --model (a, b)" in capsys.readouterr().err


def test_a_prefix_file_is_shared_as_it_is_and_named_without_its_folder(serve, book, tmp_path) -> None:
    text = tmp_path / "corpus.txt"
    text.write_bytes(("Grüße\r\n" + "ein Wort " * 100).encode())
    state = serve()
    assert measure(["--base-url", state.url, "--prefix-file", str(text), "--timeout", "10"]) == 0
    assert state.bodies[1]["messages"][0]["content"].endswith(text.read_bytes().decode())
    record = book.records()[-1]
    assert (record["prefix_source"], record["prefix_chars"]) == ("file corpus.txt", 907)


def test_a_prefix_file_that_is_not_utf8_exits_2(book, tmp_path, capsys) -> None:
    (tmp_path / "latin.txt").write_bytes(b"Gr\xfc\xdfe")
    assert measure(["--base-url", "http://h", "--prefix-file", str(tmp_path / "latin.txt")]) == 2
    assert "latin.txt is not UTF-8: byte 2" in capsys.readouterr().err


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(serve, book, monkeypatch, capsys) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    state = serve()
    assert measure(quick(state, "--api-key-env", "MY_KEY")) == 0
    assert state.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in book.path.read_text(encoding="utf-8") + "".join(capsys.readouterr())


def test_every_option_reaches_the_record(serve, book) -> None:
    arguments = quick(
        serve(),
        "--model",
        "m1",
        "--questions",
        "2",
        "--seed",
        "5",
        "--label",
        "l",
        "--engine",
        "e",
        "--engine-version",
        "v",
    )
    assert measure(arguments) == 0
    record = book.records()[-1]
    told = {name: record[name] for name in ("model", "questions", "seed", "label", "engine", "engine_version")}
    assert told == {"model": "m1", "questions": 2, "seed": 5, "label": "l", "engine": "e", "engine_version": "v"}
    assert record["prefix_source"] == "synthetic, 60 words, seed 5"


def test_a_full_disk_after_measuring_does_not_lose_the_record(serve, book, monkeypatch, capsys) -> None:
    monkeypatch.setattr(os, "write", lambda fd, data: 0)
    assert measure(quick(serve())) == 1
    out, err = capsys.readouterr()
    printed, said = err.splitlines()
    assert json.loads(printed)["verdict"] == "reused"
    assert "is the disk full?" in said and out == ""


def test_a_figure_that_cannot_be_written_leaves_the_measurement_standing(serve, book, tmp_path, capsys) -> None:
    (tmp_path / "bars.png").mkdir()
    assert measure(quick(serve(), "--figure", str(tmp_path / "bars.png"))) == 0
    assert "cannot write the figure" in capsys.readouterr().err
    assert len(book.records()) == 1


def test_a_figure_is_written_and_its_sentence_printed(serve, book, tmp_path, capsys) -> None:
    assert measure(quick(serve(), "--figure", str(tmp_path / "bars.png"))) == 0
    out = capsys.readouterr().out
    assert f"figure {tmp_path / 'bars.png'}: time to first token is " in out
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_append_list_and_show_work_on_the_same_notebook(book, capsys) -> None:
    assert labbook(["append", '{"lab": "note", "label": "a", "recorded_at": "2026-01-01"}']) == 0
    assert labbook(["append", '{"lab": "note", "label": "b"}']) == 0
    capsys.readouterr()
    assert labbook(["list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "   1  2026-01-01  note  a" and rows[1].endswith("note  b")
    assert labbook(["list", "--label", "b", "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["number"], only["label"]) == (2, "b")
    assert labbook(["show", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "a"
    assert labbook(["show", "-1"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "b"


def test_show_reports_a_measured_record_as_the_command_did(serve, book, capsys) -> None:
    measure(quick(serve()))
    reported = capsys.readouterr().out.rpartition("record appended")[0]
    assert labbook(["show"]) == 0
    assert capsys.readouterr().out.strip() == reported.strip()


def test_append_reads_standard_input_and_refuses_what_is_no_record(book, capsys, monkeypatch) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO('{"id": 1}\n'))
    assert labbook(["append", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == 1
    for wrong in ("[1]", "{", '{"a": NaN}', "7"):
        assert labbook(["append", wrong]) == 2
    assert [record["id"] for record in book.records(strict=True)] == [1]


def test_broken_lines_are_told_on_standard_error_and_cost_nothing_else(book, capsys) -> None:
    book.path.write_text('{"id": 1}\n{"id":\n{"id": 3}\n', encoding="utf-8")
    assert labbook(["list", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [record["id"] for record in json.loads(out)] == [1, 3]
    assert f"labbook: {book.path}, line 2: not JSON" in err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["list"], 1, "there is no labbook at"),
        (["show"], 1, "there is no labbook at"),
    ],
)
def test_without_a_notebook_there_is_a_message(arguments, status, said, book, capsys) -> None:
    assert labbook(arguments) == status
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "2", "-2", "x"])
def test_a_number_that_is_no_record_exits_2(number: str, book, capsys) -> None:
    book.append({"id": 1})
    assert labbook(["show", number]) == 2


def test_plot_draws_chosen_records_side_by_side(serve, book, tmp_path, capsys) -> None:
    measure(quick(serve(), "--label", "on"))
    measure(quick(serve(cache=False), "--label", "off"))
    capsys.readouterr()
    assert labbook(["plot", "1", "2", "--out", str(tmp_path / "both.png"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sentence"].startswith("on: ") and "off: " in told["sentence"]
    assert (tmp_path / "both.png").exists()


def run_python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        cwd=ROOT,
        check=False,
    )


def test_importing_and_asking_for_help_load_nothing_heavy() -> None:
    heavy = ["matplotlib", "numpy", "mlx", "requests", "prometheus_client", "tqdm", "minivllm", "labs"]
    code = (
        "import sys, labbook.measure_cli, labbook.cli\n"
        "try: labbook.measure_cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    assert run_python("-c", code).stderr.strip() == "[]"


def test_the_script_runs_from_a_checkout_and_is_the_same_command(serve, book) -> None:
    done = run_python("scripts/measure-prefix-cache.py", *quick(serve()), LABBOOK=str(book.path))
    assert (done.returncode, done.stderr) == (0, "")
    assert book.records()[-1]["verdict"] == "reused"


def test_a_terminal_that_lacks_a_character_stops_no_report(serve, book) -> None:
    done = run_python(
        "scripts/measure-prefix-cache.py",
        *quick(serve(), "--label", "→ ü"),
        LABBOOK=str(book.path),
        PYTHONIOENCODING="ascii",
        PYTHONUTF8="0",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2192" in done.stdout
    assert book.records()[-1]["label"] == "→ ü"


def test_labbook_imports_nothing_of_the_engine_or_the_course() -> None:
    for path in (ROOT / "labbook").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "minivllm import" not in text and "import minivllm" not in text and "import labs" not in text, path


@pytest.mark.parametrize(
    ("arguments", "experiment", "verdict"),
    [
        (["--experiment", "pair"], "cold_warm", "reused"),
        (["--experiment", "repeat", "--repeats", "2"], "repeat", "reused"),
        (["--experiment", "control"], "control", "not_reused"),
        (["--experiment", "eviction", "--competitors", "2"], "eviction", "reused"),
        (["--experiment", "growth", "--repeats", "3"], "growth", "reused"),
    ],
)
def test_every_experiment_is_one_command_one_record_and_has_an_exit_status(
    arguments, experiment, verdict, serve, book, tmp_path, capsys
) -> None:
    figure = tmp_path / "figure.png"
    assert measure(quick(serve(token_s=0.002), *arguments, "--expect", verdict, "--figure", str(figure))) == 0
    assert f"verdict: {verdict}." in capsys.readouterr().out and figure.is_file()
    assert [record["experiment"] for record in book.records(strict=True)] == [experiment]
    assert labbook(["show"]) == 0 and "verdict: " in capsys.readouterr().out
    assert labbook(["plot", "--out", str(figure)]) == 0


@pytest.mark.parametrize("experiment", ["repeat", "growth"])
def test_the_record_of_an_experiment_is_printed_as_json_and_another_verdict_exits_3(
    experiment: str, serve, book, capsys
) -> None:
    arguments = ["--experiment", experiment, "--repeats", "3", "--questions", "1", "--expect", "contaminated", "--json"]
    assert measure(quick(serve(), *arguments)) == 3
    assert json.loads(capsys.readouterr().out) == book.records()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--burst", "2", "--experiment", "growth"], "--burst is another experiment than --experiment growth"),
        (["--experiment", "burst", "--expect", "reused"], "a burst gives no verdict"),
        (["--repeats", "0"], "repeats is 0"),
        (["--experiment", "eviction", "--competitors", "0"], "competitors is 0"),
        (["--most-seconds", "0"], "the time to repeat in is 0"),
        (["--experiment", "growth", "--repeats", "2"], "growth needs 3 or more"),
    ],
)
def test_experiments_that_make_no_sense_exit_2(arguments: list[str], said: str, book, capsys) -> None:
    assert measure(["--base-url", "http://127.0.0.1:9", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_burst_may_be_named_as_an_experiment(serve, book) -> None:
    assert measure(quick(serve(), "--experiment", "burst")) == 0
    assert book.records()[-1]["burst_requests"] == 4
