"""A small real HTTP server that behaves as asked: a prefix cache over words, and the faults that servers have."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

HEAD = ["<s>", "system", "\n"]


@dataclass
class Behaviour:
    """What the server does. A word is a token, the template's head is three tokens long."""

    cache: bool = True
    page_tokens: int = 16
    token_s: float = 0.0  # seconds that computing one prompt token takes
    first_request_s: float = 0.0
    usage: bool = True
    cached_tokens: bool = True
    metrics: bool = True
    engine: str = "lab"
    models: tuple[str, ...] = ("m1",)
    hits_told: Callable[[int], int] = lambda hits: hits
    preloaded: bool = False  # every prompt is found in the cache, whatever its nonce
    refused_fields: tuple[str, ...] = ()
    refusal_names_field: bool = True
    refuses_system: bool = False
    foreign_tokens: int = 0  # somebody else's traffic at each request
    restarts_at_request: int | None = None
    fails_at_request: tuple[int, ...] = ()
    error_event_at_request: int | None = None
    hangs_at_request: int | None = None
    hangs_after_first_chunk: bool = False
    answer: tuple[int, str, bytes] | None = None  # status, content type, body of every chat answer
    token_field: str = "content"
    role_chunk: bool = True
    keep_alives: bool = True
    only_keep_alives: bool = False
    chunk_bytes: int = 7
    line_end: bytes = b"\r\n"
    timings: bool = False
    usage_told: dict = field(default_factory=dict)  # put over the true usage
    timings_told: dict = field(default_factory=dict)
    content_encoding: str | None = None  # of whole answers, metrics included; the bytes are what `encode` makes
    encode: Callable[[bytes], bytes] = lambda data: data
    endless_metrics: bool = False
    tokenizes: bool = False
    streams: bool = True
    delays_s: tuple[float, ...] = (0.0,)  # what each request takes besides, over and over
    most_stored: int | None = None  # prompts that the cache holds; the one that was used longest ago goes
    reuses_behind_a_change: bool = False  # a cache that forgets to compare the first word
    config_labels: str = ""  # more labels of cache_config_info
    facts: dict[str, dict] = field(default_factory=dict)  # address to the JSON object it answers
    system_fingerprint: str | None = None


@dataclass
class State:
    behaviour: Behaviour
    url: str = ""
    stored: list[list[str]] = field(default_factory=list)
    bodies: list[dict] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    hits: int = 0
    queries: int = 0
    computed: int = 0
    started: int = 1_700_000_000
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tokens(self, body: dict) -> list[str]:
        words = list(HEAD)
        for message in body["messages"]:
            words += (
                [f"<{message['role']}>", *message["content"].split()] if words != HEAD else message["content"].split()
            )
        return [*words, "<assistant>"]

    def cached(self, tokens: list[str]) -> int:
        if not self.behaviour.cache:
            return 0
        skipped = len(HEAD) + 1 if self.behaviour.reuses_behind_a_change else 0
        shared = max([_shared(tokens[skipped:], old[skipped:]) for old in self.stored], default=-skipped) + skipped
        if self.behaviour.preloaded:
            shared = len(tokens)
        page = self.behaviour.page_tokens
        return min(shared, len(tokens) - 1) // page * page


def _shared(one: list[str], other: list[str]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *args: object) -> None:
        return

    def do_GET(self) -> None:
        behaviour = self.state.behaviour
        if self.path in behaviour.facts:
            self._json(200, behaviour.facts[self.path])
        elif self.path == "/v1/models":
            self._json(200, {"data": [{"id": name} for name in behaviour.models]})
        elif self.path == "/metrics" and behaviour.endless_metrics:
            self._endless()
        elif self.path == "/metrics" and behaviour.metrics:
            self._send(200, "text/plain", self._metrics().encode())
        else:
            self._json(404, {"error": {"message": "File Not Found"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize" and self.state.behaviour.tokenizes:
            tokens = [hash(token) % 50_000 for token in self.state.tokens(body)]
            return self._json(200, {"tokens": tokens, "count": len(tokens)})
        if self.path != "/v1/chat/completions":
            return self._json(404, {"error": {"message": "File Not Found"}})
        self.state.headers.append(dict(self.headers))
        if not self._refused(body):
            self._chat(body)

    def _refused(self, body: dict) -> bool:
        behaviour = self.state.behaviour
        for name in behaviour.refused_fields:
            if name in body:
                message = f"Unknown field: {name}" if behaviour.refusal_names_field else "Bad Request"
                self._json(400, {"error": {"message": message}})
                return True
        if behaviour.refuses_system and body["messages"][0]["role"] == "system":
            self._json(500, {"error": {"message": "Conversation roles must alternate"}})
            return True
        return False

    def _chat(self, body: dict) -> None:
        state, behaviour = self.state, self.state.behaviour
        state.bodies.append(body)
        number = len(state.bodies)
        if behaviour.answer is not None:
            return self._send(*behaviour.answer)
        if number in behaviour.fails_at_request:
            return self._json(503, {"error": {"message": f"out of memory at request {number}"}})
        if number == behaviour.hangs_at_request and not behaviour.hangs_after_first_chunk:
            state.stopping.wait(30)
            return None
        if number == behaviour.restarts_at_request:
            state.hits = state.queries = state.computed = 0
        tokens = state.tokens(body)
        cached = state.cached(tokens)
        state.stored = [old for old in state.stored if old != tokens and _shared(old, tokens) <= len(HEAD)] + [tokens]
        if behaviour.most_stored is not None:
            state.stored = state.stored[-behaviour.most_stored :]
        state.hits += behaviour.hits_told(cached)
        state.queries += len(tokens) + behaviour.foreign_tokens
        state.computed += len(tokens) - cached
        time.sleep(behaviour.delays_s[number % len(behaviour.delays_s)])
        time.sleep((len(tokens) - cached) * behaviour.token_s + (behaviour.first_request_s if number == 1 else 0))
        details = {"prompt_tokens_details": {"cached_tokens": cached}} if behaviour.cached_tokens else {}
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 2, **details, **behaviour.usage_told}
        times = {"cache_n": cached, "prompt_n": len(tokens) - cached, "prompt_ms": 1.5, **behaviour.timings_told}
        timings = {"timings": times} if behaviour.timings else {}
        if behaviour.system_fingerprint:
            timings["system_fingerprint"] = behaviour.system_fingerprint
        if body.get("stream") and behaviour.streams:
            return self._stream(body, usage, timings, number)
        message = {"role": "assistant", "content": "The archive"}
        self._json(
            200,
            {
                "choices": [{"index": 0, "finish_reason": "length", "message": message}],
                **({"usage": usage} if behaviour.usage else {}),
                **timings,
            },
        )
        return None

    def _stream(self, body: dict, usage: dict, timings: dict, number: int) -> None:
        behaviour, end = self.state.behaviour, self.state.behaviour.line_end
        asked = body.get("stream_options", {}).get("include_usage")
        lines: list[bytes] = [b": keepalive 1/1" + end + end] if behaviour.keep_alives else []

        def event(payload: dict) -> None:
            lines.append(b"data: " + json.dumps(payload, ensure_ascii=False).encode() + end + end)

        def delta(content: dict, reason: str | None = None) -> None:
            event({"choices": [{"index": 0, "delta": content, "finish_reason": reason}]})

        if behaviour.role_chunk:
            delta({"role": "assistant", "content": None})
        delta({behaviour.token_field: "Thé "})
        delta({behaviour.token_field: "archive"}, "length")
        if number == behaviour.error_event_at_request:
            event({"error": {"message": "engine died"}})
        if behaviour.usage and asked:
            event({"choices": [], "usage": usage, **timings})
        lines.append(b"data: [DONE]" + end + end)
        data = b"".join(lines)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        while behaviour.only_keep_alives and not self.state.stopping.wait(0.02):
            self.wfile.write(b": ping" + end + end)
        for start in range(0, len(data), behaviour.chunk_bytes):
            self.wfile.write(data[start : start + behaviour.chunk_bytes])
            self.wfile.flush()
            if number == behaviour.hangs_at_request:
                self.state.stopping.wait(30)
        self.close_connection = True

    def _metrics(self) -> str:
        state, model = self.state, self.state.behaviour.models[0]
        if self.state.behaviour.engine == "llamacpp":
            return (
                f"# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total {state.computed}\n"
                f"llamacpp:prompt_tokens_cached_total {state.hits}\n"
            )
        name, labels = self.state.behaviour.engine, self.state.behaviour.config_labels
        return (
            f'{name}:cache_config_info{{block_size="{self.state.behaviour.page_tokens}"{labels}}} 1.0\n'
            f'{name}:prefix_cache_hits_total{{model_name="{model}",engine="0"}} {float(state.hits)}\n'
            f'{name}:prefix_cache_hits_created{{model_name="{model}",engine="0"}} 1.75e9\n'
            f'{name}:prefix_cache_queries_total{{model_name="{model}",engine="0"}} {float(state.queries)}\n'
        )

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        while not self.state.stopping.is_set():
            self.wfile.write(b"# nothing\n" * 10_000)

    def _json(self, status: int, payload: dict) -> None:
        self._send(status, "application/json", json.dumps(payload).encode())

    def _send(self, status: int, content_type: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        data = self.state.behaviour.encode(data)
        if self.state.behaviour.content_encoding:
            self.send_header("Content-Encoding", self.state.behaviour.content_encoding)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        return  # clients that leave early are part of the tests


@pytest.fixture
def serve() -> Iterator[Callable[..., State]]:
    """`serve(cache=False, ...)` starts a server on loopback and returns its state, with `url`."""
    running: list[tuple[Server, State]] = []

    def start(**asked: object) -> State:
        state = State(Behaviour(**asked))  # type: ignore[arg-type]
        server = Server(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"state": state}))
        state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        running.append((server, state))
        return state

    yield start
    for server, state in running:
        state.stopping.set()
        server.shutdown()
        server.server_close()
