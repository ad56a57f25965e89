"""The tap passes everything through as it is, in both directions, whichever end fails first."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from labbook.errors import LabbookError, UsageError
from labbook.tap.exchange import MAX_RECORDED_BYTES
from labbook.tap.server import Tap
from tests.labbook.raw_http import (
    WAIT_S,
    Answer,
    RawUpstream,
    Seen,
    ask,
    connected,
    get,
    ok,
    post,
    raw_upstream,
    read_until,
)

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Tapped:
    """A tap before a raw upstream, and the entries it told."""

    def __init__(self, upstream: RawUpstream, tap: Tap, entries: list[dict[str, Any]]) -> None:
        self.upstream, self.tap, self.url, self.entries = upstream, tap, tap.url, entries

    def entry(self) -> dict[str, Any]:
        """The only entry; the tap is closed first, so that everything is reported."""
        self.tap.close()
        (entry,) = self.entries
        return entry


@pytest.fixture
def tapped() -> Iterator[Callable[..., Tapped]]:
    with ExitStack() as stack:

        def start(answer: Answer | bytes, **settings: Any) -> Tapped:
            upstream = stack.enter_context(raw_upstream(answer))
            entries: list[dict[str, Any]] = []
            asked = {"timeout_s": WAIT_S, "asks_for_tokens": False, **settings}
            return Tapped(upstream, stack.enter_context(Tap(upstream.url, tell=entries.append, **asked)), entries)

        yield start


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def test_a_request_arrives_with_the_same_method_target_headers_and_body(tapped) -> None:
    it = tapped(ok(b""))
    body = bytes(range(256))
    ask(it.url, post("//v1/a%2Fb/%7e?b=1&a=%20&a&key=", body, "X-Odd:  two  words ", "x-odd: again", "X-Empty:"))
    (seen,) = it.upstream.seen
    assert seen.request_line == b"POST //v1/a%2Fb/%7e?b=1&a=%20&a&key= HTTP/1.1"
    assert seen.body == body
    host = it.upstream.url.removeprefix("http://").encode()
    assert seen.headers == [
        b"Host: " + host,
        b"Connection: close",
        b"Content-Length: 256",
        b"X-Odd: two  words ",
        b"x-odd: again",
        b"X-Empty: ",
    ]


def test_what_is_for_one_connection_only_is_not_passed_on(tapped) -> None:
    it = tapped(ok(b"", "Keep-Alive: timeout=5", "Connection: keep-alive, X-Private", "X-Private: 1", "X-Public: 2"))
    headers = (
        "Connection: X-Mine",
        "X-Mine: 1",
        "TE: trailers",
        "Upgrade: websocket",
        "Proxy-Authorization: Basic eA==",
    )
    answer = ask(it.url, get("/v1/models", *headers))
    assert it.upstream.seen[0].headers[2:] == []
    assert answer.split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Length: 0",
        b"X-Public: 2",
        b"Connection: close",
        b"",
        b"",
    ]


def test_a_body_in_chunks_arrives_in_chunks_with_the_same_bytes(tapped) -> None:
    it = tapped(ok(b"fine"))
    request = b"POST /v1/x HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    ask(it.url, request + b"3;note=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n")
    (seen,) = it.upstream.seen
    assert seen.body == b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n"
    assert it.entry()["request_bytes"] == 13


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(tapped) -> None:
    it = tapped(ok(b"fine"))
    with connected(it.url) as client:
        head, _, body = post("/v1/x", b"later", "Expect: 100-continue").partition(b"\r\n\r\n")
        client.sendall(head + b"\r\n\r\n")
        assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        assert read_until(client, b"fine").startswith(b"HTTP/1.1 200 OK")
    (seen,) = it.upstream.seen
    assert seen.body == b"later" and b"Expect" not in seen.head


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: +3",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_request_that_could_hide_another_is_refused(framing: str, tapped) -> None:
    it = tapped(ok(b""))
    answer = ask(it.url, f"POST /v1/x HTTP/1.1\r\nHost: t\r\n{framing}\r\n\r\nabc".encode())
    assert answer.startswith(b"HTTP/1.1 400 ") and it.upstream.seen == []


def test_an_answer_comes_back_with_its_status_headers_and_bytes(tapped) -> None:
    body = bytes(range(256))
    head = (
        b"HTTP/1.1 418 I'm a teapot\r\nServer: pot\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 256\r\n\r\n"
    )
    it = tapped(head + body)
    assert ask(it.url, get("/v1/models")) == head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "429 Too Many Requests", "503 Unavailable"])
def test_an_error_of_the_upstream_is_passed_on_as_it_is(status: str, tapped) -> None:
    body = b'{"error": {"message": "no"}}'
    it = tapped(f"HTTP/1.1 {status}\r\nRetry-After: 7\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = ask(it.url, post("/v1/chat/completions", b"{}"))
    assert answer.startswith(f"HTTP/1.1 {status}\r\nRetry-After: 7\r\n".encode()) and body_of(answer) == body
    entry = it.entry()
    assert (entry["status"], entry["error"], entry["answer_error"]) == (int(status[:3]), None, "no")


def test_a_compressed_answer_passes_compressed_and_is_read_for_the_record(tapped) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    body = gzip.compress(json.dumps({"choices": [], "usage": usage}).encode())
    it = tapped(ok(body, "Content-Encoding: gzip"))
    answer = ask(it.url, post("/v1/chat/completions", b"{}", "Accept-Encoding: gzip"))
    assert b"Content-Encoding: gzip" in answer and body_of(answer) == body
    assert it.entry()["cached_tokens"] == 4


def test_head_brings_the_headers_alone_and_metrics_pass(tapped) -> None:
    it = tapped(lambda seen: seen.send(ok(b"" if seen.head.startswith(b"HEAD") else b"lab:hits_total 1\n", "X-A: 1")))
    head = ask(it.url, get("/metrics", method="HEAD"))
    assert head == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: 1\r\nConnection: close\r\n\r\n"
    assert body_of(ask(it.url, get("/metrics"))) == b"lab:hits_total 1\n"


def test_an_answer_without_a_body_gets_none(tapped) -> None:
    it = tapped(b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n")
    answer = ask(it.url, get("/v1/x", method="DELETE"))
    assert answer == b"HTTP/1.1 204 No Content\r\nX-A: 1\r\nConnection: close\r\n\r\n"


def test_one_connection_of_a_client_serves_several_requests(tapped) -> None:
    it = tapped(lambda seen: seen.send(ok(seen.request_line.split()[1])))
    with connected(it.url) as client:
        for path in (b"/a", b"/b", b"/c"):
            client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: t\r\n\r\n")
            assert read_until(client, b"\r\n\r\n" + path)
    assert [seen.request_line.split()[1] for seen in it.upstream.seen] == [b"/a", b"/b", b"/c"]


def test_an_answer_that_ends_with_its_connection_comes_in_chunks_and_whole(tapped) -> None:
    it = tapped(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
    assert body_of(ask(it.url, get("/v1/x"))) == b"d\r\nuntil the end\r\n0\r\n\r\n"
    old = ask(it.url, b"GET /v1/x HTTP/1.0\r\n\r\n")
    assert body_of(old) == b"until the end" and b"chunked" not in old


def test_an_event_reaches_the_client_before_the_upstream_sends_the_next(tapped) -> None:
    has_first = threading.Event()

    def answer(seen: Seen) -> None:
        seen.send(STREAM_HEAD + b'f\r\ndata: {"a":1}\n\n\r\n')
        assert has_first.wait(WAIT_S)
        seen.send(b"10\r\ndata: [DONE]\r\n\r\n\r\n")
        seen.left()

    it = tapped(answer)
    with connected(it.url) as client:
        client.sendall(post("/v1/chat/completions", b"{}"))
        read_until(client, b'data: {"a":1}\n\n')
        has_first.set()
        read_until(client, b"data: [DONE]")  # and leaves, as the openai client does
    assert it.entry()["error"] is None


def test_a_client_that_leaves_before_the_answer_begins_closes_the_upstream(tapped) -> None:
    asked, has_left = threading.Event(), threading.Event()

    def answer(seen: Seen) -> None:
        asked.set()
        assert seen.left()
        has_left.set()

    it = tapped(answer)
    with connected(it.url) as client:
        client.sendall(post("/v1/chat/completions", b"{}"))
        assert asked.wait(WAIT_S)
    assert has_left.wait(WAIT_S)
    entry = it.entry()
    assert (entry["status"], entry["error"]) == (None, "the client left before the end of the answer")


def test_a_client_that_leaves_in_the_middle_of_a_stream_closes_the_upstream(tapped) -> None:
    has_left = threading.Event()

    def answer(seen: Seen) -> None:
        seen.send(STREAM_HEAD + b"4\r\n: a\n\r\n")
        assert seen.left()
        has_left.set()

    it = tapped(answer)
    with connected(it.url) as client:
        client.sendall(post("/v1/chat/completions", b"{}"))
        read_until(client, b": a\n")
    assert has_left.wait(WAIT_S)
    assert it.entry()["error"] == "the client left before the end of the answer"


def test_a_client_that_leaves_in_the_middle_of_its_request_is_told_of(tapped) -> None:
    it = tapped(ok(b""))
    with connected(it.url) as client:
        client.sendall(b"POST /v1/x HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nabc")
    while not it.entries:
        threading.Event().wait(0.01)
    assert it.entry()["error"] == "the client left before its request was complete"
    assert it.upstream.seen == [] or it.upstream.seen[0].body == b"abc"


@pytest.mark.parametrize(
    "answer",
    [
        STREAM_HEAD + b"4\r\n: a\n\r\n",
        STREAM_HEAD + b"9\r\n: a\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n: a\n",
    ],
)
def test_an_answer_that_breaks_off_ends_short_for_the_client_too(answer: bytes, tapped) -> None:
    it = tapped(answer)
    body = body_of(ask(it.url, post("/v1/x", b"{}")))
    assert b": a\n" in body and not body.endswith(b"0\r\n\r\n")
    assert it.entry()["error"] == "the upstream broke off in the middle of the answer"


@pytest.mark.parametrize("answer", [b"", b"not HTTP at all\r\n\r\n"])
def test_an_upstream_that_gives_no_answer_is_a_502_of_the_tap(answer: bytes, tapped) -> None:
    it = tapped(answer)
    told = ask(it.url, post("/v1/x", b"{}"))
    assert told.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert json.loads(body_of(told))["error"]["type"] == "labbook_tap"
    assert it.entry()["error"].startswith("the upstream gave no answer")


def test_an_upstream_that_hangs_is_a_504_of_the_tap(tapped) -> None:
    it = tapped(lambda seen: seen.left(), timeout_s=0.2)
    told = ask(it.url, post("/v1/x", b"{}"))
    assert told.startswith(b"HTTP/1.1 504 ") and b"the upstream sent nothing for 0.2 s" in told


def test_an_upstream_that_hangs_in_the_middle_ends_the_answer_short(tapped) -> None:
    def answer(seen: Seen) -> None:
        seen.send(STREAM_HEAD + b"4\r\n: a\n\r\n")
        seen.left()

    it = tapped(answer, timeout_s=0.3)
    body = body_of(ask(it.url, post("/v1/x", b"{}")))
    assert body == b"4\r\n: a\n\r\n"
    assert it.entry()["error"] == "the upstream sent nothing more for 0.3 s"


def test_an_upstream_that_is_not_there_is_a_502_that_says_so() -> None:
    entries: list[dict[str, Any]] = []
    with Tap("http://127.0.0.1:9/v1", tell=entries.append) as tap:
        told = ask(tap.url, post("/v1/chat/completions", b"x" * 300_000))
    assert (
        told.startswith(b"HTTP/1.1 502 ")
        and b"cannot reach the upstream http://127.0.0.1:9: Connection refused" in told
    )
    assert entries[0]["request_bytes"] == 300_000


def test_an_upstream_that_answers_before_it_has_read_everything_is_heard(tapped) -> None:
    def answer(seen: Seen) -> None:
        seen.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        seen.drain()

    it = tapped(answer)
    it.upstream.reads_bodies = False
    told = ask(it.url, post("/v1/x", b"x" * 3_000_000))
    assert told.startswith(b"HTTP/1.1 413 Too Large") and body_of(told) == b"no"
    assert it.entry()["request_bytes"] == 3_000_000


def test_the_environments_proxy_is_never_used(tapped, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    it = tapped(ok(b"here"), asks_for_tokens=True)
    assert body_of(ask(it.url, get("/v1/models"))) == b"here"


def test_twelve_requests_at_once_each_get_their_own_answer(tapped) -> None:
    together = threading.Barrier(12)

    def answer(seen: Seen) -> None:
        together.wait(WAIT_S)  # nobody is answered before all have come
        seen.send(ok(seen.body))

    it = tapped(answer)
    bodies = [json.dumps({"messages": [], "n": n}).encode() for n in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda body: body_of(ask(it.url, post("/v1/x", body))), bodies))
    it.tap.close()
    assert answers == bodies
    assert sorted(entry["number"] for entry in it.entries) == list(range(1, 13))


def test_a_body_beyond_64_mib_passes_whole_and_is_not_recorded(tapped) -> None:
    body = b"x" * (MAX_RECORDED_BYTES + 1)
    it = tapped(lambda seen: seen.send(ok(str(len(seen.body)).encode())))
    assert body_of(ask(it.url, post("/v1/x", body))) == str(len(body)).encode()
    entry = it.entry()
    assert entry["request_bytes"] == len(body)
    assert entry["absent"]["request"] == f"longer than 64 MiB, of {len(body)} bytes"


def test_closing_the_tap_cuts_what_is_under_way_and_reports_it(tapped) -> None:
    asked = threading.Event()

    def answer(seen: Seen) -> None:
        asked.set()
        seen.left()

    it = tapped(answer)
    with connected(it.url) as client:
        client.sendall(post("/v1/x", b"{}"))
        assert asked.wait(WAIT_S)
        assert it.entry()["error"] == "the tap was stopped"
        assert client.recv(1) == b""


def test_a_forward_proxy_request_is_refused(tapped) -> None:
    it = tapped(ok(b""))
    told = ask(it.url, get("http://elsewhere.example/v1"))
    assert told.startswith(b"HTTP/1.1 400 ") and b"no forward proxy" in told and it.upstream.seen == []


def test_a_path_before_v1_is_kept(tapped) -> None:
    with raw_upstream(ok(b"")) as upstream, Tap(f"{upstream.url}/p/m/v1", asks_for_tokens=False) as tap:
        ask(tap.url, get("/v1/models"))
        assert upstream.seen[0].request_line == b"GET /p/m/v1/models HTTP/1.1"


def test_places_where_no_tap_can_stand_are_refused(tapped) -> None:
    it = tapped(ok(b""))
    port = int(it.url.rpartition(":")[2])
    with pytest.raises(LabbookError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use"):
        Tap("http://127.0.0.1:9", port=port)
    with pytest.raises(UsageError, match="the upstream's own"):
        Tap("http://127.0.0.1:8000/v1", port=8000)
    with pytest.raises(UsageError, match="port is 70000"):
        Tap("http://127.0.0.1:8000/v1", port=70_000)
    with pytest.raises(UsageError, match="holds a password"):
        Tap("http://me:secret@127.0.0.1:8000/v1")
    with pytest.raises(UsageError, match="timeout is nan"):
        Tap("http://127.0.0.1:8000/v1", timeout_s=float("nan"))
