"""`/slots` in llama-server's shapes: what it shows, what it keeps to itself, and what its actions refuse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.live import LiveServer, eventually, live_server

PROMPT = list(range(40, 80))
HOSTILE_NAMES: list[Any] = [
    "../x",
    "a/b",
    "a\\b",
    "/abs",
    ".",
    "..",
    "...",
    "",
    " ",
    "a\u0000b",
    "a" * 300,
    "x.bin/",
    ".hidden",
    "line\nbreak",
    "link_out",
    "link_up/x",
    "~root",
    "%2e%2e%2fx",
    7,
    ["x.bin"],
    {"name": "x"},
    True,
    None,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outside") / "slots"


@pytest.fixture(scope="module")
def slot_server(folder: Path) -> Iterator[LiveServer]:
    with live_server(slot_save_path=folder) as server:
        yield server


@pytest.fixture
def slots(slot_server: LiveServer) -> Iterator[LiveServer]:
    """A server whose slots are empty."""
    assert slot_server.http.post("/reset_prefix_cache").status_code == 200
    yield slot_server
    slot_server.audit()


def act(server: LiveServer, action: str, id_slot: Any = 0, **body: Any) -> httpx.Response:
    return server.http.post(f"/slots/{id_slot}", params={"action": action}, json=body)


def listing(server: LiveServer) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = server.http.get("/slots").json()
    return entries


def cached_tokens(answer: dict[str, Any]) -> int:
    number: int = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    return number


def test_save_erase_restore_and_the_next_request_of_any_slot_hits_the_whole_pages(
    slots: LiveServer, folder: Path
) -> None:
    first = slots.complete(prompt=PROMPT, id_slot=0, ignore_eos=True)
    saved = act(slots, "save", filename="talk.bin").json()
    assert saved["timings"].keys() == {"save_ms"}
    assert {key: saved[key] for key in ("id_slot", "filename", "n_saved", "n_written")} == {
        "id_slot": 0,
        "filename": "talk.bin",
        "n_saved": 43,
        "n_written": (folder / "talk.bin").stat().st_size,
    }
    assert act(slots, "erase").json()["n_erased"] == 43
    assert slots.engine.stats["pages_cached"] == 0
    restored = act(slots, "restore", 2, filename="talk.bin").json()
    assert (restored["id_slot"], restored["n_restored"], restored["n_read"]) == (2, 43, saved["n_written"])
    assert restored["timings"].keys() == {"restore_ms"}
    again = slots.complete(prompt=PROMPT, id_slot=3, ignore_eos=True)
    assert (cached_tokens(again), again["choices"][0]["text"]) == (32, first["choices"][0]["text"])


def test_who_goes_on_in_a_slot_computes_only_what_is_new(slots: LiveServer) -> None:
    slots.complete(prompt=PROMPT, id_slot=1, max_tokens=1)
    following = slots.complete(prompt=[*PROMPT, 90, 91], id_slot=1)
    assert (cached_tokens(following), following["timings"]["cache_n"], following["timings"]["prompt_n"]) == (40, 40, 2)


def test_files_are_this_users_alone(slots: LiveServer, folder: Path) -> None:
    slots.complete(prompt=PROMPT, id_slot=0)
    act(slots, "save", filename="private.bin")
    assert (folder.stat().st_mode & 0o777, (folder / "private.bin").stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_listing_tells_what_slots_hold_and_never_what_was_said(slots: LiveServer) -> None:
    slots.complete(prompt=PROMPT, id_slot=1, cache_salt="tenant", ignore_eos=True)
    entries = listing(slots)
    assert [entry["id"] for entry in entries] == [0, 1, 2, 3]
    used = entries[1]
    assert (used["n_prompt_tokens"], used["n_held_tokens"], used["is_processing"]) == (43, 43, False)
    assert (used["n_prompt_tokens_cache"], used["n_prompt_tokens_processed"]) == (0, 40)
    assert (used["model"], used["identity"]["page_size"], used["is_salted"]) == ("tiny", 16, True)
    assert "prompt" not in used
    assert "tenant" not in slots.http.get("/slots").text


def test_the_text_is_shown_where_the_server_was_started_to_show_it() -> None:
    with live_server(expose_slot_text=True) as server:
        server.complete(prompt="What is a page?", id_slot=0)
        assert listing(server)[0]["prompt"].startswith("<|bos|>What is a page?")


@pytest.mark.parametrize("action", ["save", "restore"])
def test_a_hostile_file_name_is_refused_and_touches_nothing(slots: LiveServer, folder: Path, action: str) -> None:
    """PS-04"""
    slots.complete(prompt=PROMPT, id_slot=0, ignore_eos=True)
    outside = folder.parent
    (outside / "target").write_text("not yours")
    for link, target in (("link_out", outside / "target"), ("link_up", outside)):
        if not (folder / link).is_symlink():
            os.symlink(target, folder / link)
    before = {path: path.lstat().st_mtime_ns for path in outside.rglob("*")}
    for name in HOSTILE_NAMES:
        response = act(slots, action, filename=name)
        assert response.status_code == 400, (name, response.text)
        assert response.json()["error"]["param"] == "filename", name
    assert act(slots, action).status_code == 400
    assert {path: path.lstat().st_mtime_ns for path in outside.rglob("*")} == before
    assert listing(slots)[0]["n_held_tokens"] == 43


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/slots/9?action=save", {"filename": "x"}, 400),
        ("/slots/-1?action=save", {"filename": "x"}, 400),
        ("/slots/one?action=save", {"filename": "x"}, 400),
        ("/slots/0?action=burn", {"filename": "x"}, 400),
        ("/slots/0", {"filename": "x"}, 400),
        ("/slots/0?action=save", {}, 400),
        ("/slots/0?action=save", {"filename": "x", "mode": 1}, 400),
        ("/slots/0?action=save", {"filename": "x"}, 400),
        ("/slots/0?action=restore", {"filename": "absent"}, 400),
    ],
)
def test_an_action_that_cannot_be_done_is_refused(
    slots: LiveServer, path: str, body: dict[str, Any], status: int
) -> None:
    response = slots.http.post(path, json=body)
    assert (response.status_code, response.json()["error"]["type"]) == (status, "invalid_request_error")


def test_without_a_save_path_there_are_no_actions(server: LiveServer) -> None:
    for action in ("save", "restore", "erase"):
        response = act(server, action, filename="x")
        assert response.status_code == 501
        assert "--slot-save-path" in response.json()["error"]["message"]


@pytest.mark.parametrize("id_slot", [4, -2, "0", 1.5, True])
def test_a_completion_for_a_slot_that_is_not_there_is_refused(server: LiveServer, id_slot: Any) -> None:
    response = server.post("/v1/completions", prompt="Who?", id_slot=id_slot)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "id_slot")


def test_any_slot_is_minus_one_and_cache_prompt_false_computes_everything(slots: LiveServer) -> None:
    slots.complete(prompt=PROMPT, id_slot=-1)
    assert cached_tokens(slots.complete(prompt=PROMPT, cache_prompt=False)) == 0
    assert cached_tokens(slots.complete(prompt=PROMPT, cache_prompt=True)) > 0
    assert cached_tokens(slots.chat(id_slot=2)) == 0
    assert listing(slots)[2]["n_prompt_tokens"] > 0


def test_a_busy_slot_answers_409_to_every_action_and_another_slot_is_not_taken_instead(tmp_path: Path) -> None:
    """SV-05. The request would take thousands of steps; its client hangs up when the actions have been answered."""
    with live_server(slot_save_path=tmp_path, num_pages=512) as server:
        body = {"prompt": PROMPT, "id_slot": 0, "max_tokens": 7000, "stream": True, "ignore_eos": True}
        with server.http.stream("POST", "/v1/completions", json=body) as running:
            lines = running.iter_lines()  # kept: whoever drops it hangs up
            next(lines)
            assert listing(server)[0]["is_processing"] is True
            for action in ("save", "restore", "erase"):
                response = act(server, action, filename="x")
                assert (response.status_code, response.json()["error"]["code"]) == (409, "slot_busy")
            assert [entry["is_processing"] for entry in listing(server)] == [True, False, False, False]
        eventually(lambda: server.engine.stats["requests_running"] == 0)
        assert list(tmp_path.iterdir()) == []
        assert act(server, "save", filename="x").status_code == 200
        server.audit()


def test_a_salted_sequence_is_restored_for_its_own_salt_alone(slots: LiveServer) -> None:
    """PC-06"""
    slots.complete(prompt=PROMPT, id_slot=0, cache_salt="s1", ignore_eos=True)
    act(slots, "save", filename="salted.bin")
    slots.http.post("/reset_prefix_cache")
    for salt in ({}, {"cache_salt": "s2"}):
        response = act(slots, "restore", filename="salted.bin", **salt)
        assert response.status_code == 400
        assert "salt is 'sha256:" in response.json()["error"]["message"]
    assert act(slots, "restore", filename="salted.bin", cache_salt="s1").json()["n_restored"] == 43
    assert cached_tokens(slots.complete(prompt=PROMPT, cache_salt="s2")) == 0
    assert cached_tokens(slots.complete(prompt=PROMPT)) == 0
    assert cached_tokens(slots.complete(prompt=PROMPT, cache_salt="s1")) >= 32
