"""Streams: whole characters, nothing of a stop string, and an error that cannot be taken for an end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from minivllm.engine import Engine
from minivllm.request import RequestOutput
from minivllm.sampling import Sampler
from tests.server.live import CHAT, LiveServer, build_engine, live_server

TEXT = "Grüße ☃ 你好 🚀!"


@pytest.fixture
def scripted_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    """Every request samples the tokens of TEXT, one after another, whatever the model says."""
    with live_server() as server:
        script = token_ids_of_text(server)

        def sample(self: Any, _: Any) -> int:
            return int(next(self.__dict__.setdefault("script", iter(script))))

        monkeypatch.setattr(Sampler, "sample", sample)
        yield server
        server.audit()


def token_ids_of_text(server: LiveServer) -> list[int]:
    assert server.engine.facts is not None
    return server.engine.facts.tokenizer.encode(TEXT, add_special_tokens=False)


class Failing(Engine):
    """Its fourth step is its last."""

    num_steps = 0

    def step(self) -> list[RequestOutput]:
        self.num_steps += 1
        if self.num_steps == 4:
            raise RuntimeError("no step will ever run again")
        return super().step()


def events(server: LiveServer, **body: Any) -> list[str]:
    asked = {**CHAT, **body, "stream": True}
    with server.http.stream("POST", "/v1/chat/completions", json=asked) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    return [line.removeprefix("data: ") for line in lines]


def deltas(server: LiveServer, **body: Any) -> list[str]:
    *chunks, done = events(server, **body)
    assert done == "[DONE]"
    return [json.loads(chunk)["choices"][0]["delta"].get("content", "") for chunk in chunks]


def test_a_character_of_several_tokens_comes_whole(scripted_server: LiveServer) -> None:
    num_tokens = len(token_ids_of_text(scripted_server))
    parts = deltas(scripted_server, max_tokens=num_tokens)
    assert "".join(parts) == TEXT
    assert num_tokens > len(TEXT)
    assert not any("\N{REPLACEMENT CHARACTER}" in part for part in parts)


@pytest.mark.parametrize("stop", ["你好", "☃ 你", ["nowhere", "🚀"], "!", "ß"], ids=ascii)
def test_nothing_of_a_stop_string_is_streamed(scripted_server: LiveServer, stop: str | list[str]) -> None:
    asked = {"max_tokens": len(token_ids_of_text(scripted_server)), "stop": stop}
    found = stop if isinstance(stop, str) else stop[-1]
    parts = deltas(scripted_server, **asked)
    whole = scripted_server.chat(**asked)["choices"][0]
    assert "".join(parts) == whole["message"]["content"] == TEXT[: TEXT.index(found)]
    assert (whole["finish_reason"], whole["stop_reason"]) == ("stop", found)


def test_a_failure_after_the_first_chunk_is_an_error_event_and_no_end() -> None:
    with live_server(lambda: build_engine(Failing)) as server:
        *chunks, last = events(server, max_tokens=50, ignore_eos=True)
        assert chunks
        error = json.loads(last)["error"]
        assert "no step will ever run again" in error["message"]
        health = server.http.get("/health")
        assert health.status_code == 503
        assert "no step will ever run again" in health.json()["error"]["message"]
        with pytest.raises(openai.InternalServerError, match="no step will ever run again"):
            server.openai().chat.completions.create(model="tiny", messages=CHAT["messages"])


def test_the_client_raises_when_a_stream_breaks() -> None:
    with live_server(lambda: build_engine(Failing)) as server:
        stream = server.openai().chat.completions.create(model="tiny", messages=CHAT["messages"], stream=True)
        with pytest.raises(openai.APIError, match="no step will ever run again"):
            list(stream)


def test_a_failure_before_the_first_chunk_has_a_status_of_its_own() -> None:
    with live_server(lambda: build_engine(Failing, max_batched_tokens=16)) as server:
        response = server.post("/v1/completions", prompt=[7] * 200, stream=True)
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "engine_dead"


def test_numbers_that_are_not_finite_end_one_request_with_an_error() -> None:
    def build() -> Engine:
        engine = build_engine()
        engine._runner.forward = not_finite(engine._runner.forward)  # type: ignore[method-assign]
        return engine

    with live_server(build) as server:
        response = server.post("/v1/completions", prompt=[7] * 13)
        assert response.status_code == 500
        assert "not finite" in response.json()["error"]["message"]
        assert server.complete(prompt=[7] * 12)["usage"]["completion_tokens"] == 4
        server.audit()


def not_finite(forward: Any) -> Any:
    """Reports the numbers of a 13 token prompt as not finite."""

    def wrapped(work: Any) -> Any:
        result = forward(work)
        if work[0].num_tokens == 13:
            object.__setattr__(result, "is_finite", [False] * len(work))
        return result

    return wrapped
