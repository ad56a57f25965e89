"""The home folder: nothing half made is ever found in it, and losing it costs only time."""

from __future__ import annotations

import os
import pwd
import threading
from pathlib import Path

import pytest

from minivllm.home import folder_made_once, home, remembered
from minivllm.models.errors import ModelError


def test_the_environment_chooses_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIVLLM_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"
    monkeypatch.delenv("MINIVLLM_HOME")
    assert home().name == "minivllm"


@pytest.mark.parametrize("value", ["", None])
def test_without_a_home_variable_the_account_says_where_home_is(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MINIVLLM_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    account = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert home().is_relative_to(account)
    monkeypatch.setenv("MINIVLLM_HOME", "~/here")
    assert home() == account / "here"


def test_a_home_variable_and_an_account_that_are_both_absent_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINIVLLM_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(ModelError, match="set MINIVLLM_HOME"):
        home()


def test_the_home_of_an_unknown_user_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIVLLM_HOME", "~nobodyx/y")
    with pytest.raises(ModelError, match="MINIVLLM_HOME=~nobodyx/y names a user"):
        home()


def test_a_model_folder_that_cannot_be_made_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "home", tmp_path / "file" / "deep" / "home", Path("/proc/x")):
        with pytest.raises(ModelError, match=rf"{folder} cannot be written \(.+\); set MINIVLLM_HOME"):
            folder_made_once(folder / "model", lambda _: None)


def test_a_folder_whose_making_failed_is_not_there(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        folder_made_once(tmp_path / "model", fill)
    assert [path.name for path in tmp_path.iterdir()] == [".model.lock"]


def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    left_over = tmp_path / ".model.abc123.part"
    left_over.mkdir()
    (left_over / "half").write_text("x")
    folder_made_once(tmp_path / "model", lambda folder: (folder / "whole").write_text("y"))
    assert not left_over.exists() and (tmp_path / "model" / "whole").read_text() == "y"


def test_two_at_once_make_a_folder_once(tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()
    fillings = []

    def fill(folder: Path) -> None:
        fillings.append(folder)
        inside.set()
        go_on.wait()

    threads = [threading.Thread(target=folder_made_once, args=(tmp_path / "model", fill)) for _ in range(2)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    assert not (tmp_path / "model").exists()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(fillings) == 1 and (tmp_path / "model").is_dir()


def test_a_value_is_computed_once_for_a_key(own_home: Path) -> None:
    values = iter([1, 2, 3])
    assert [remembered("numbers", key, lambda: next(values)) for key in ("a", "a", "b")] == [1, 1, 2]


def test_a_value_that_is_not_kept_is_computed_again(own_home: Path) -> None:
    values = iter([1, 2])
    answers = [remembered("numbers", "a", lambda: next(values), keep=lambda _: False) for _ in range(2)]
    assert answers == [1, 2]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 0, "values": {"a": 9}}'])
def test_a_damaged_memory_is_made_anew(damage: str, own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "numbers.json").write_text(damage)
    assert remembered("numbers", "a", lambda: 5) == 5
    assert remembered("numbers", "a", lambda: 6) == 5


def test_a_home_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("MINIVLLM_HOME", str(file / "home"))
    assert remembered("numbers", "a", lambda: 7) == 7
