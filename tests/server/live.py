"""The real server on the real `tiny` model, in threads of the test's own process, on a free loopback port."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import openai
from prometheus_client.parser import text_string_to_metric_families

from minivllm.cache.audit import check
from minivllm.config import EngineConfig
from minivllm.engine import Engine
from minivllm.models.loading import load_model
from minivllm.request import RequestOutput
from minivllm.server.app import create_app
from minivllm.server.engine_thread import EngineThread
from minivllm.server.serving import Address, UvicornServer, bind

WAIT_S = 30
CHAT = {"messages": [{"role": "user", "content": "Where is the page?"}], "max_tokens": 4, "temperature": 0}


@dataclass(frozen=True)
class LiveServer:
    url: str
    engine: EngineThread
    http: httpx.Client

    def openai(self, api_key: str = "none") -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=api_key, max_retries=0)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def chat(self, **body: Any) -> dict[str, Any]:
        return self._answer(self.post("/v1/chat/completions", **{**CHAT, **body}))

    def complete(self, **body: Any) -> dict[str, Any]:
        return self._answer(self.post("/v1/completions", **{"temperature": 0, "max_tokens": 4, **body}))

    def metrics(self) -> dict[str, float]:
        """Sample name to value; histogram buckets left out."""
        families = text_string_to_metric_families(self.http.get("/metrics").text)
        samples = [sample for family in families for sample in family.samples]
        return {sample.name: sample.value for sample in samples if not sample.name.endswith("_bucket")}

    def audit(self) -> None:
        """The books of the cache, checked where they are kept."""
        self.engine.call(check).result(WAIT_S)

    @staticmethod
    def _answer(response: httpx.Response) -> dict[str, Any]:
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


E = TypeVar("E", bound=Engine)


def build_engine(kind: type[E] = Engine, **settings: Any) -> E:  # type: ignore[assignment]
    return kind(load_model("tiny"), EngineConfig(**{"num_pages": 64, "debug_poison_pages": True, **settings}))


@contextmanager
def live_server(
    build: Callable[[], Engine] | None = None,
    *,
    api_key: str | None = None,
    wait: bool = True,
    expose_slot_text: bool = False,
    **settings: Any,
) -> Iterator[LiveServer]:
    """`settings` are `EngineConfig`'s. With `wait`, the engine is ready."""
    listener, address = bind(Address(port=0))
    engine = EngineThread(build or (lambda: build_engine(**settings)))
    app = create_app(engine, "tiny", api_key, expose_slot_text=expose_slot_text)
    uvicorn_server = UvicornServer(app, on_signal=engine.request_stop)
    thread = threading.Thread(target=lambda: uvicorn_server.run(sockets=[listener]), daemon=True)
    engine.start()
    thread.start()
    with httpx.Client(base_url=address.url, timeout=WAIT_S) as http:
        if wait:
            eventually(lambda: engine.health.state != "loading")
        try:
            yield LiveServer(address.url, engine, http)
        finally:
            engine.request_stop()
            uvicorn_server.should_exit = True
            thread.join(WAIT_S)
            assert engine.join(WAIT_S), "the engine thread did not end"
            assert not thread.is_alive(), "the server did not end"


def eventually(condition: Callable[[], object]) -> None:
    """Wait for something another thread is about to do; fails after half a minute."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


class StepwiseEngine(Engine):
    """Runs a step only when the test allows one more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.permits = threading.Semaphore(0)
        self.num_steps = 0

    def step(self) -> list[RequestOutput]:
        assert self.permits.acquire(timeout=WAIT_S), "no step was allowed"
        outputs = super().step()
        self.num_steps += 1
        return outputs
