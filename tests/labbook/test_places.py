"""What stands at a place is looked at before a request is sent or a file is opened."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from labbook.book import Labbook
from labbook.cli import main as labbook
from labbook.errors import LabbookError
from labbook.measure_cli import main as measure


def a_loop(folder: Path) -> str:
    (folder / "loop").symlink_to(folder / "loop")
    return str(folder / "loop")


def a_fifo(folder: Path) -> str:
    os.mkfifo(folder / "fifo")
    return str(folder / "fifo")


def a_link_to_nowhere(folder: Path) -> str:
    (folder / "link").symlink_to(folder / "missing" / "labbook.md")
    return str(folder / "link")


WRONG_PLACES: dict[str, Callable[[Path], str]] = {
    "a loop of links": a_loop,
    "a FIFO": a_fifo,
    "/dev/full": lambda folder: "/dev/full",
    "/dev/null": lambda folder: "/dev/null",
    "a folder": str,
    "a name of 300 characters": lambda folder: str(folder / ("n" * 300)),
    "a file as a folder": lambda folder: f"{__file__}/labbook.md",
    "a link into a missing folder": a_link_to_nowhere,
}


@pytest.fixture(params=WRONG_PLACES.values(), ids=WRONG_PLACES.keys())
def wrong_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param(tmp_path))


def test_a_place_that_takes_no_labbook_is_refused_before_the_first_request(serve, wrong_place, capsys) -> None:
    state = serve()
    assert measure(["--base-url", state.url, "--labbook", wrong_place]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("measure-prefix-cache: the ") and state.bodies == []


def test_a_place_that_takes_no_labbook_takes_no_record(wrong_place) -> None:
    with pytest.raises(LabbookError):
        Labbook(wrong_place).append({"id": 1})


def test_a_place_that_is_no_labbook_is_not_listed_and_hangs_nobody(wrong_place, capsys) -> None:
    assert labbook(["list", "--labbook", wrong_place]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("place", ["a loop of links", "a FIFO", "/dev/null", "a folder", "a name of 300 characters"])
def test_a_prefix_file_that_is_no_regular_file_exits_2(serve, tmp_path, place: str, capsys) -> None:
    state = serve()
    folder = tmp_path / "places"
    folder.mkdir()
    arguments = ["--base-url", state.url, "--labbook", str(tmp_path / "labbook.md")]
    assert measure([*arguments, "--prefix-file", WRONG_PLACES[place](folder)]) == 2
    assert "the prefix file" in capsys.readouterr().err and state.bodies == []


@pytest.mark.parametrize("from_environment", [False, True])
@pytest.mark.parametrize("main", [measure, labbook])
def test_a_name_that_ends_in_a_slash_is_no_file(main, from_environment: bool, tmp_path, monkeypatch, capsys) -> None:
    command = ["--base-url", "http://h"] if main is measure else ["list"]
    if from_environment:
        monkeypatch.setenv("LABBOOK", f"{tmp_path}/new/")
    else:
        command += ["--labbook", f"{tmp_path}/new/"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert "names a folder: name a file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_place_without_permission_is_refused_before_the_first_request(serve, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as it is for everybody but root
    state = serve()
    assert measure(["--base-url", state.url, "--labbook", str(tmp_path / "labbook.md")]) == 2
    assert "cannot be written: no permission" in capsys.readouterr().err and state.bodies == []


def test_a_link_to_a_labbook_that_is_still_to_be_made_is_followed(tmp_path) -> None:
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    Labbook(tmp_path / "link.md").append({"id": 1})
    assert Labbook(tmp_path / "real.md").records() == [{"id": 1}]


def test_a_figure_is_not_written_into_a_fifo(serve, tmp_path, capsys) -> None:
    os.mkfifo(tmp_path / "bars.png")
    places = ["--labbook", str(tmp_path / "labbook.md"), "--figure", str(tmp_path / "bars.png")]
    assert measure(["--base-url", serve().url, "--prefix-words", "60", *places]) == 0
    assert "it is a FIFO" in capsys.readouterr().err


HOSTILE = "a\nb\x1b[2Jc\r\x9bd\u202ee\x7f"
SHOWN = "a\\nb\\u001b[2Jc\\r\\u009bd\\u202ee\\u007f"


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_a_list_shows_one_line_for_a_record_whatever_its_label_holds(tmp_path, capsys) -> None:
    book = Labbook(tmp_path / "labbook.md")
    book.append({"lab": "note", "label": HOSTILE, "model": "Grüße 你好"})
    assert labbook(["list", "--labbook", str(book.path)]) == 0
    assert capsys.readouterr().out == f"   1  note  {SHOWN}  Grüße 你好\n"


def test_a_shown_record_moves_no_cursor(tmp_path, capsys) -> None:
    book = Labbook(tmp_path / "labbook.md")
    book.append({"label": HOSTILE})
    assert labbook(["show", "--labbook", str(book.path)]) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown) and json.loads(shown) == {"label": HOSTILE}


def test_a_report_and_its_figure_line_move_no_cursor(serve, tmp_path, capsys) -> None:
    places = ["--labbook", str(tmp_path / "labbook.md"), "--figure", str(tmp_path / "f.png"), "--label", HOSTILE]
    assert measure(["--base-url", serve().url, "--prefix-words", "60", *places]) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown) and shown.count(SHOWN) == 2
    assert labbook(["show", "--labbook", str(tmp_path / "labbook.md")]) == 0
    assert is_harmless(capsys.readouterr().out)


def test_the_words_of_a_server_move_no_cursor(serve, tmp_path, capsys) -> None:
    said = json.dumps({"error": {"message": HOSTILE}}).encode()
    state = serve(answer=(200, "application/json", said))
    assert measure(["--base-url", state.url, "--labbook", str(tmp_path / "labbook.md")]) == 1
    err = capsys.readouterr().err
    assert is_harmless(err) and SHOWN in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("text", ["plain", "ümläut →", "narrow\u202fno-break\u00a0spaces", "你好", ""])
def test_what_does_no_harm_is_shown_as_it_is(text: str) -> None:
    from labbook.output import printable

    assert printable(text) == text
