"""What the tap writes and prints: shared prefixes, causes, times, and never a key."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labbook.cli import main as labbook
from labbook.errors import LabbookError
from labbook.sequences import shared_length
from labbook.tap.exchange import Recording
from labbook.tap.history import History
from labbook.tap.line import as_line
from labbook.tap.masking import masked, secrets_of, shown_target
from labbook.tap.private_file import PrivateFile, read_entries, request_bodies
from labbook.tap.readable import UnreadableError, decoded
from labbook.tap.server import Tap
from tests.labbook.raw_http import Seen, ask, connected, ok, post, raw_upstream

ROOT = Path(__file__).parents[2]
KEY = "sk-very-secret-0123456789"


def chat(*texts: str, **fields: Any) -> dict[str, Any]:
    roles = ["system", "user", "assistant", "user"]
    return {"model": "m", "messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)], **fields}


def history(*bodies: object) -> History:
    kept = History()
    for number, body in enumerate(bodies, start=1):
        kept.add(number, "/v1/chat/completions", body)
    return kept


def best(*bodies: object) -> tuple[int, int, int, str, bool] | None:
    """With whom the last body shares how much of it."""
    found = history(*bodies).best_earlier(len(bodies))
    return found and (found[0].number, found[0].length, found[0].of, found[0].unit, found[0].diverges)


@settings(deadline=None)  # machines that are busy are no fault
@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_the_shared_length_is_that_of_a_loop(first: list[int], second: list[int]) -> None:
    naive = 0
    while naive < min(len(first), len(second)) and first[naive] == second[naive]:
        naive += 1
    assert shared_length(first, second) == naive


def test_the_longest_shared_prefix_wins_and_of_equals_the_latest() -> None:
    # "system\nThe corpus.\nuser\n" has 24 characters
    one, other = chat("The corpus.", "Why?"), chat("A clock.", "Why?")
    assert best(one, other, chat("The corpus.", "When?")) == (1, 26, 29, "characters", True)
    assert best(one, one, chat("The corpus.", "When?")) == (2, 26, 29, "characters", True)
    assert best(one, one) == (1, 28, 28, "characters", False)


def test_a_longer_conversation_continues_an_earlier_one_and_diverges_nowhere() -> None:
    found = best(chat("S", "Why?"), chat("S", "Why?", "Because.", "When?"))
    assert found is not None and found[0] == 1 and found[-1] is False


@pytest.mark.parametrize("fields", [{"model": "other"}, {"cache_salt": "tenant"}])
def test_prompts_of_another_model_or_salt_share_nothing(fields: dict[str, str]) -> None:
    assert best(chat("S", "Why?"), chat("S", "Why?") | fields) is None


def test_tools_come_before_the_messages_as_templates_have_them() -> None:
    tools = [{"name": "a"}], [{"name": "b"}]
    found = best(chat("S", tools=tools[0]), chat("S", tools=tools[1]))
    assert found == (1, len('[{"name": "'), len('[{"name": "b"}]\nsystem\nS'), "characters", True)


def test_prompts_sent_as_token_ids_are_counted_in_tokens() -> None:
    assert best({"prompt": [5, 6, 7]}, {"prompt": [5, 6, 8, 9]}) == (1, 2, 4, "tokens", True)
    assert best({"prompt": [5, 6, 7]}, {"prompt": "five six"}) is None


@pytest.mark.parametrize("body", [None, [1], {"model": "m"}, {"messages": "no list"}, {"messages": [7, None]}])
def test_odd_bodies_are_no_trouble(body: object) -> None:
    history(body, body).best_earlier(2)


def test_the_upstream_counts_tokens_where_it_can_and_characters_do_elsewhere() -> None:
    def answer(seen: Seen) -> None:
        asked = json.loads(seen.body)
        if seen.request_line.startswith(b"POST /tokenize"):
            assert b"Authorization: Bearer " + KEY.encode() in seen.head
            words = " ".join(message["content"] for message in asked["messages"]).split()
            return seen.send(ok(json.dumps({"tokens": [len(word) for word in words]}).encode()))
        usage = {"prompt_tokens": asked["told"], "prompt_tokens_details": {"cached_tokens": 1}}
        return seen.send(ok(json.dumps({"choices": [], "usage": usage}).encode()))

    entries: list[dict[str, Any]] = []
    bodies = [chat("a bb ccc", "dd", told=4), chat("a bb ccc", "e ff", told=5), chat("a bb ccc", "g", told=99)]
    with raw_upstream(answer) as upstream, Tap(upstream.url, tell=entries.append) as tap:
        for body in bodies:
            ask(tap.url, post("/v1/chat/completions", json.dumps(body).encode(), f"Authorization: Bearer {KEY}"))
            eventually_reported(entries, bodies.index(body) + 1)
    assert entries[1]["shared"] == {
        **{"with": 1, "length": 3, "of": 5, "earlier_of": 4},
        **{"unit": "tokens", "diverges": True},
    }
    # The answer counts other tokens than /tokenize: the server renders this prompt in another way.
    assert entries[2]["shared"]["unit"] == "characters"


def eventually_reported(entries: Sequence[object], count: int) -> None:
    deadline_s = time.monotonic() + 20
    while len(entries) < count:
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


@pytest.fixture
def explaining(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[object, object]]]:
    """A `labbook.explain` that says what it was asked."""
    asked: list[tuple[object, object]] = []
    module = types.ModuleType("labbook.explain")
    module.explain = lambda a, b: asked.append((a, b)) or types.SimpleNamespace(cause="clock", field="messages[0]")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "labbook.explain", module)
    yield asked


def tapped_lines(*bodies: dict[str, Any]) -> list[str]:
    entries: list[dict[str, Any]] = []
    with raw_upstream(ok(b'{"choices": []}')) as upstream, Tap(upstream.url, tell=entries.append) as tap:
        for body in bodies:
            ask(tap.url, post("/v1/chat/completions", json.dumps(body).encode()))
    return [as_line(entry) for entry in sorted(entries, key=lambda entry: entry["number"])]


def test_the_cause_of_a_divergence_is_asked_of_explain(explaining: list[tuple[object, object]]) -> None:
    first, second = chat("It is 10:00.", "Why?"), chat("It is 10:01.", "Why?")
    lines = tapped_lines(first, second)
    assert lines[1].endswith("diverges at character 17: clock in messages[0]") and explaining == [(first, second)]


def test_without_explain_the_place_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "labbook.explain", None)
    lines = tapped_lines(chat("It is 10:00.", "Why?"), chat("It is 10:01.", "Why?"))
    assert lines[1].startswith("#2 POST /v1/chat/completions 200: 17 of 29 characters shared with #1, total ")
    assert lines[1].endswith("; diverges at character 17")


def test_a_line_tells_cached_tokens_times_and_errors() -> None:
    entry = {
        **{
            "number": 3,
            "method": "POST",
            "target": "/v1/completions",
            "status": 200,
            "error": "the client left\x1b[2J",
        },
        **{"shared": None, "cause": None, "answer_error": None, "prompt_tokens": 120, "cached_tokens": 96},
        **{"first_token_s": 0.05, "total_s": 1.5, "streamed": True},
    }
    said = "#3 POST /v1/completions 200: 96 of 120 tokens cached, first token 50 ms, total 1.50 s; the client left"
    assert as_line(entry) == said + "\\u001b[2J"
    assert "cached tokens not told" in as_line(entry | {"cached_tokens": None})
    untold = entry | {"status": None, "prompt_tokens": None, "cached_tokens": None}
    assert as_line(untold).startswith("#3 POST /v1/completions no answer: no usage told: ")
    assert as_line(untold | {"streamed": False}).startswith("#3 POST /v1/completions no answer: first token")


# --- what is never written -------------------------------------------------------------------------------------------


def test_no_key_reaches_the_file_wherever_it_stands(tmp_path: Path) -> None:
    password = "opensesame-7"
    basic = base64.b64encode(f"me:{password}".encode()).decode()
    repeats = json.dumps(
        {"error": {"message": f"Incorrect API key provided: {KEY}; cookie crumbs-of-mine, {password}"}}
    )
    body = json.dumps({"messages": [], "api_key": "in-the-body-1"}).encode()
    keys = [
        f"Authorization: Bearer {KEY}",
        f"X-Api-Key: {KEY}x",
        "Cookie: s=crumbs-of-mine",
        f"Proxy-Auth: Basic {basic}",
    ]
    out = tmp_path / "tap.jsonl"
    entries: list[dict[str, Any]] = []
    with raw_upstream(ok(repeats.encode(), "Set-Cookie: a=baked-by-server")) as upstream:
        with Tap(upstream.url, out=out, tell=entries.append) as tap:
            answer = ask(tap.url, post("/v1/x?key=in-the-query-1&action=save", body, *keys))
        assert KEY.encode() in answer and upstream.seen[0].body == body  # what passes is unchanged
    written = out.read_text(encoding="utf-8") + json.dumps(entries) + as_line(entries[0])
    secrets = [KEY, "crumbs", password, basic, "in-the-body-1", "in-the-query-1", "baked-by-server"]
    assert [secret for secret in secrets if secret in written] == []
    assert read_entries(out)[0]["target"] == "/v1/x?key=***&action=save"


def test_a_full_disk_is_told_and_stops_neither_lines_nor_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: PrivateFile, entry: dict[str, Any]) -> None:
        raise LabbookError("an entry was not written: No space left on device")

    monkeypatch.setattr(PrivateFile, "append", full)
    entries: list[dict[str, Any]] = []
    warnings: list[str] = []
    told = {"out": tmp_path / "t.jsonl", "tell": entries.append, "warn": warnings.append}
    with raw_upstream(ok(b"{}")) as upstream, Tap(upstream.url, **told) as tap:
        assert ask(tap.url, post("/v1/x", b"{}")).endswith(b"{}")
    assert warnings == ["an entry was not written: No space left on device"] and len(entries) == 1


@pytest.mark.parametrize("body", [b'{"temperature": NaN}', b"[1]", b"no JSON", b'{"a": 1e999}'])
def test_a_body_that_is_no_strict_json_object_is_kept_as_text(body: bytes, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with raw_upstream(ok(b"")) as upstream, Tap(upstream.url, out=out, asks_for_tokens=False) as tap:
        ask(tap.url, post("/v1/x", body))
    (entry,) = read_entries(out)
    assert (entry["body"], entry["request_text"]) == (None, body.decode())


def test_a_placeholder_for_a_key_masks_no_words_of_a_prompt() -> None:
    assert secrets_of([("Authorization", "Bearer none"), ("Api-Key", "EMPTY")], "/v1?api_key=x") == []
    assert masked("none of it is EMPTY", secrets_of([("Authorization", "Bearer none")], "/")) == "none of it is EMPTY"


@pytest.mark.parametrize(
    ("target", "shown"),
    [("/v1/x", "/v1/x"), ("/slots/0?action=save", "/slots/0?action=save"), ("/x?a=1&b&c=", "/x?a=***&b&c=***")],
)
def test_a_query_is_shown_without_its_values(target: str, shown: str) -> None:
    assert shown_target(target) == shown


def test_the_file_and_its_folder_are_for_their_owner_only_and_not_for_git(tmp_path: Path) -> None:
    file = PrivateFile(tmp_path / "private" / "tap.jsonl")
    file.append({"number": 1, "recorded_at": "a", "body": {"b": 2, "a": 1}})
    file.close()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert (file.path.parent / ".gitignore").read_text(encoding="utf-8").endswith("\n*\n")
    assert [list(body) for body in request_bodies(file.path)] == [["b", "a"]]


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tap.jsonl"
    path.touch(mode=0o644)
    with pytest.raises(LabbookError, match=r"mode 044.*chmod 600"):
        PrivateFile(path)
    assert path.read_bytes() == b""


def test_a_link_a_folder_and_a_fifo_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", ".", "a/b/tap.jsonl"):
        with pytest.raises(LabbookError):
            PrivateFile(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_torn_entry_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = PrivateFile(tmp_path / "tap.jsonl")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:5]))
    with pytest.raises(LabbookError, match="is the disk full"):
        file.append({"number": 1})
    monkeypatch.undo()
    file.append({"number": 2})
    file.close()
    assert read_entries(file.path) == [{"number": 2}]


def test_a_recording_keeps_the_first_bytes_and_counts_all() -> None:
    recording = Recording(max_bytes=5)
    for block in (b"abc", b"def", b"ghi"):
        recording.add(block)
    assert (recording.body, recording.num_bytes, recording.is_whole) == (b"abcde", 9, False)
    with pytest.raises(UnreadableError, match="longer than"):
        decoded(recording, [])


@pytest.mark.parametrize("coding", ["br", "gzip", "zstd"])
def test_a_body_that_cannot_be_unpacked_is_not_recorded_and_says_why(coding: str) -> None:
    recording = Recording()
    recording.add(b"\xff\xfe not packed")
    with pytest.raises(UnreadableError, match=coding):
        decoded(recording, [("Content-Encoding", coding)])


# --- the command -----------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_command_cleanly_and_reports_what_was_under_way(tmp_path: Path) -> None:
    with raw_upstream(lambda seen: seen.left() and None) as upstream:
        command = [sys.executable, "-m", "labbook.cli", "tap", "--upstream", upstream.url, "--json", "--no-tokenize"]
        tap = subprocess.Popen(
            [*command, "--labbook", str(tmp_path / "labbook.md")],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT},
        )
        assert tap.stdout is not None
        greeting = json.loads(tap.stdout.readline())
        with connected(greeting["listening"]) as client:
            client.sendall(post("/v1/chat/completions", json.dumps(chat("S", "Why?")).encode()))
            eventually_reported(upstream.seen, 1)
            tap.send_signal(signal.SIGINT)
            out, err = tap.communicate(timeout=20)
    (entry,) = [json.loads(line) for line in out.splitlines()]
    assert (tap.returncode, err, entry["error"]) == (0, "", "the tap was stopped")
    (recorded,) = read_entries(Path(greeting["file"]))
    assert recorded["body"] == chat("S", "Why?") and "body" not in entry
    assert Path(greeting["file"]).parent == tmp_path / "labbook-tap"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--upstream", "localhost:8000"], 2),
        (["--upstream", "http://127.0.0.1:8000", "--port", "8000"], 2),
        (["--upstream", "http://127.0.0.1:8000", "--timeout", "0"], 2),
        (["--upstream", "http://127.0.0.1:8000", "--host", "203.0.113.1"], 1),
    ],
)
def test_wrong_use_of_the_tap_ends_with_a_sentence(arguments, status, tmp_path, capsys) -> None:
    assert labbook(["tap", *arguments, "--labbook", str(tmp_path / "labbook.md")]) == status
    err = capsys.readouterr().err
    assert err.startswith("labbook: ") and len(err.splitlines()) == 1
