"""A client that hangs up frees its pages within a step, streamed or not, early or late (known fault SC-09)."""

from __future__ import annotations

import json
import logging
import socket
import struct
from contextlib import ExitStack
from typing import Any

import pytest

from minivllm.cache.audit import check
from minivllm.config import SamplingParams
from minivllm.request import RequestOutput
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError
from minivllm.server.serving import say_nothing_of_vanished_clients
from tests.server.live import WAIT_S, LiveServer, StepwiseEngine, build_engine, eventually, live_server


def connection(server: LiveServer, **body: Any) -> socket.socket:
    """A request sent by hand, so that its client can hang up at any moment."""
    host, port = server.url.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    client = socket.create_connection((host, int(port)), timeout=WAIT_S)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    client.sendall(head.encode() + f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return client


def test_five_streams_and_five_waiting_clients_hang_up_and_the_next_request_runs() -> None:
    with live_server(num_pages=1024, max_batched_tokens=16, max_active_requests=4) as server:
        for number in range(5):
            body = {"prompt": [5 + number] * 20, "max_tokens": 2000, "stream": True, "ignore_eos": True}
            with server.http.stream("POST", "/v1/completions", json=body) as response:
                assert next(response.iter_lines()).startswith("data: ")
        eventually(lambda: server.metrics()["minivllm:num_requests_running"] == 0)
        with ExitStack() as clients:
            for number in range(5):
                clients.enter_context(connection(server, prompt=[50 + number] * 3000, max_tokens=1))
            eventually(lambda: server.metrics()["minivllm:num_requests_running"] > 0)
        eventually(lambda: server.metrics()["minivllm:num_requests_waiting"] == 0)
        eventually(lambda: server.metrics()["minivllm:num_requests_running"] == 0)
        stats = server.engine.stats
        assert stats["generated_tokens"] < 5 * 2000, "the streams went on without their clients"
        assert stats["computed_prefill_tokens"] < 5 * 20 + 5 * 3000, "the prompts were computed for nobody"
        assert server.metrics()["minivllm:kv_cache_usage_perc"] == 0
        assert server.complete(prompt=[99] * 200, max_tokens=3, ignore_eos=True)["usage"]["completion_tokens"] == 3
        server.audit()


def test_a_client_that_hangs_up_before_its_first_chunk_is_noticed() -> None:
    engine = Built(max_batched_tokens=16)
    with live_server(engine.build) as server:
        client = connection(server, prompt=[7] * 600, max_tokens=1, stream=True)
        eventually(lambda: server.engine.stats["requests_waiting"] == 1)
        client.close()
        eventually(lambda: server.engine._commands.qsize() == 1)  # its abort, behind the step that waits for a permit
        engine.allow_steps(1)
        eventually(lambda: server.engine.stats["requests_running"] == server.engine.stats["requests_waiting"] == 0)
        assert server.engine.stats["computed_prefill_tokens"] == 16
        assert server.engine.stats["pages_active"] == server.engine.stats["pages_partial"]
        server.audit()


@pytest.mark.parametrize("num_steps", [0, 1, 3, 6], ids=lambda steps: f"after_{steps}_steps")
def test_an_abort_frees_all_pages_before_the_next_step(num_steps: int) -> None:
    """50 prompt tokens in chunks of 16: aborted while it waits, in prefill, at the last chunk, while decoding."""
    engine = Built(max_batched_tokens=16)
    thread = EngineThread(engine.build)
    thread.start()
    outputs: list[RequestOutput | ApiError] = []
    thread.submit("left", [7] * 50, SamplingParams(max_tokens=9, ignore_eos=True), None, outputs.append)
    eventually(lambda: thread.stats.get("requests_waiting") == 1)
    engine.allow_steps(num_steps)
    thread.abort("left")
    stats_then = thread.call(lambda running: running.stats())
    engine.allow_steps(1)  # the step that had begun before the abort
    stats = stats_then.result(WAIT_S)
    assert stats["pages_active"] == stats["pages_partial"]
    assert stats["requests_running"] == 0
    assert all(not isinstance(output, ApiError) and output.finish_reason is None for output in outputs)
    thread.call(check).result(WAIT_S)
    thread.request_stop()
    assert thread.join(WAIT_S)


def test_a_client_that_leaves_while_it_sends_its_body_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with live_server() as server:
        for num_sent in (0, 1, 40):
            client = unfinished(server, num_sent)
            client.close()
        with unfinished(server, 0) as reset:
            reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert server.chat()
    assert caplog.records == []


def test_a_stop_does_not_wait_for_a_body_that_never_ends(caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as clients:
        with live_server() as server:
            client = clients.enter_context(unfinished(server, 40))
            assert server.chat()  # by now the server reads the body
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 503 ") and b"shutting_down" in answer
    assert caplog.records == []


def test_only_the_warning_about_vanished_clients_is_kept_from_the_log() -> None:
    def record(message: str) -> logging.LogRecord:
        return logging.LogRecord("asyncio", logging.WARNING, "", 0, message, None, None)

    assert not say_nothing_of_vanished_clients(record("socket.send() raised exception."))
    assert say_nothing_of_vanished_clients(record("Task was destroyed but it is pending!"))


def unfinished(server: LiveServer, num_sent: int) -> socket.socket:
    """A request whose body is announced and sent in part."""
    host, port = server.url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), timeout=WAIT_S)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Content-Length: 4000\r\n\r\n".encode() + b" " * num_sent)
    return client


class Built:
    """Builds one engine in the server's thread and paces it from the test's."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._engine: StepwiseEngine | None = None

    def build(self) -> StepwiseEngine:
        self._engine = build_engine(StepwiseEngine, **self._settings)
        return self._engine

    def allow_steps(self, count: int) -> None:
        """Lets this many steps run, and waits until they have."""
        engine = self._engine
        assert engine is not None
        goal = engine.num_steps + count
        if count:
            engine.permits.release(count)
        eventually(lambda: engine.num_steps == goal)
