"""One thread owns the engine: where it runs, how it dies, and who hears of it (known fault SV-12)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from minivllm.config import SamplingParams
from minivllm.engine import Engine
from minivllm.request import RequestOutput
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError, EngineGoneError
from tests.server.live import WAIT_S, build_engine, eventually

PARAMS = SamplingParams(max_tokens=3, temperature=0, ignore_eos=True)


@pytest.fixture
def thread() -> Iterator[EngineThread]:
    running = EngineThread(build_engine)
    running.start()
    eventually(lambda: running.health.state == "ready")
    yield running
    running.request_stop()
    assert running.join(WAIT_S)


def test_everything_of_the_engine_runs_in_one_thread() -> None:
    seen: set[str] = set()

    class Watched(Engine):
        def __getattribute__(self, name: str) -> Any:
            seen.add(threading.current_thread().name)
            return super().__getattribute__(name)

    running = EngineThread(lambda: build_engine(Watched))
    running.start()
    outputs: list[RequestOutput | ApiError] = []
    eventually(lambda: running.health.state == "ready")
    running.submit("a", [5, 6], PARAMS, None, outputs.append)
    eventually(lambda: len(outputs) == 3)
    running.abort("a")
    running.request_stop()
    assert running.join(WAIT_S)
    assert seen == {"minivllm-engine"}


def test_a_request_the_engine_refuses_fails_alone(thread: EngineThread) -> None:
    outputs: list[RequestOutput | ApiError] = []
    thread.submit("bad", [10**6], PARAMS, None, outputs.append)
    thread.submit("good", [5, 6], PARAMS, None, outputs.append)
    eventually(lambda: len(outputs) == 4)
    assert isinstance(outputs[0], ApiError)
    assert outputs[0].code == "invalid_token_id"
    assert isinstance(outputs[-1], RequestOutput)
    assert outputs[-1].finish_reason == "length"


def test_a_command_that_fails_tells_its_caller_and_no_one_else(thread: EngineThread) -> None:
    def fail(_: Engine) -> None:
        raise ZeroDivisionError("as asked")

    with pytest.raises(ZeroDivisionError):
        thread.call(fail).result(WAIT_S)
    assert thread.health.state == "ready"


def test_when_the_thread_dies_everyone_who_waits_hears_why() -> None:
    class Dying(Engine):
        def step(self) -> list[RequestOutput]:
            raise MemoryError("no memory left")

    deaths: list[str] = []
    running = EngineThread(lambda: build_engine(Dying), on_death=lambda health: deaths.append(health.reason))
    running.start()
    eventually(lambda: running.health.state == "ready")
    heard: list[RequestOutput | ApiError] = []
    hold = threading.Event()
    running.call(lambda _: hold.wait(WAIT_S))
    for number in range(3):
        running.submit(str(number), [5, 6], PARAMS, None, heard.append)
    hold.set()
    assert running.join(WAIT_S)
    running.submit("late", [5, 6], PARAMS, None, heard.append)
    assert len(heard) == 4
    assert all(isinstance(error, EngineGoneError) and "no memory left" in str(error) for error in heard)
    assert deaths == ["MemoryError: no memory left"]
    with pytest.raises(EngineGoneError):
        running.call(lambda engine: engine.stats()).result(WAIT_S)


def test_a_stop_ends_what_is_pending_with_an_error(thread: EngineThread) -> None:
    heard: list[RequestOutput | ApiError] = []
    thread.submit("long", [5, 6], SamplingParams(max_tokens=900, ignore_eos=True), None, heard.append)
    eventually(lambda: heard)
    thread.request_stop()
    assert thread.join(WAIT_S)
    assert isinstance(heard[-1], EngineGoneError)
    assert heard[-1].code == "shutting_down"


def test_an_engine_that_cannot_be_built_is_reported_with_its_reason() -> None:
    def build() -> Engine:
        raise ValueError("no such weights")

    running = EngineThread(build)
    running.start()
    assert running.join(WAIT_S)
    assert (running.health.state, running.health.reason) == ("dead", "ValueError: no such weights")
    assert running.facts is None


def test_a_program_that_ends_with_its_engine_thread_ends_well() -> None:
    """MLX aborted programs (status 134) that ended while the stream of a thread that had ended was still there."""
    script = """
import subprocess
import sys
import threading
from minivllm.config import EngineConfig
from minivllm.engine import Engine
from minivllm.models.loading import load_model
from minivllm.server.engine_thread import EngineThread
ready = threading.Event()
thread = EngineThread(lambda: Engine(load_model("tiny"), EngineConfig(num_pages=16)), on_ready=ready.set)
thread.start()
assert ready.wait(60)
thread.request_stop()
thread.join(60)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
