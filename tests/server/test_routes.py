"""Tokenization, echo with log probabilities, health, version, reset, and the key."""

from __future__ import annotations

import threading
from typing import Any

import openai
import pytest

from minivllm.engine import Engine
from tests.server.live import CHAT, WAIT_S, LiveServer, StepwiseEngine, build_engine, eventually, live_server


def test_tokenize_and_detokenize_are_inverse(server: LiveServer) -> None:
    body = server.post("/tokenize", prompt="What is a page?", return_token_strs=True).json()
    assert body["count"] == len(body["tokens"]) == len(body["token_strs"])
    assert body["max_model_len"] == 8192
    assert body["token_strs"][0] == "<|bos|>"
    assert server.post("/detokenize", tokens=body["tokens"][1:]).json() == {"prompt": "What is a page?"}
    plain = server.post("/tokenize", prompt="What is a page?", add_special_tokens=False).json()
    assert plain["tokens"] == body["tokens"][1:]
    assert plain["token_strs"] is None


def test_tokenize_counts_a_chat_as_the_chat_route_does(server: LiveServer) -> None:
    tokens = server.post("/tokenize", messages=CHAT["messages"]).json()["tokens"]
    assert server.chat()["usage"]["prompt_tokens"] == len(tokens)


def test_a_rendered_chat_sent_as_text_hits_the_chats_pages(server: LiveServer) -> None:
    """PC-18: one beginning of text on both roads, whether or not the text spells it."""
    messages = [{"role": "user", "content": "page " * 30}]
    tokens = server.post("/tokenize", messages=messages).json()["tokens"]
    text = server.post("/detokenize", tokens=tokens).json()["prompt"]
    assert text.startswith("<|bos|>")
    server.chat(messages=messages)
    for prompt in (text, text.removeprefix("<|bos|>")):
        usage = server.complete(prompt=prompt)["usage"]
        assert usage["prompt_tokens"] == len(tokens)
        assert usage["prompt_tokens_details"]["cached_tokens"] == (len(tokens) - 1) // 16 * 16


@pytest.mark.parametrize("tokens", [[-1], [512], [2**63], [1.5], [True], ["a"], "abc", None], ids=repr)
def test_detokenize_refuses_what_is_no_token_id(server: LiveServer, tokens: Any) -> None:
    response = server.post("/detokenize", tokens=tokens)
    assert response.status_code == 400
    assert response.json()["error"]["param"].startswith("tokens")


@pytest.mark.parametrize("num_tokens", [1, 15, 16, 17, 33])
def test_echo_with_logprobs_has_a_row_for_every_token_warm_as_cold(server: LiveServer, num_tokens: int) -> None:
    """PC-12: such a request does not read the cache; its rows equal those of a run without any cache."""
    asked = {"prompt": list(range(40, 40 + num_tokens)), "echo": True, "logprobs": 1, "max_tokens": 1}
    answers = [server.complete(**asked) for _ in range(2)]
    for answer in answers:
        columns = answer["choices"][0]["logprobs"]
        assert len(columns["tokens"]) == len(columns["token_logprobs"]) == num_tokens + 1
        assert columns["token_logprobs"][0] is columns["top_logprobs"][0] is None
        assert answer["choices"][0]["text"] == "".join(columns["tokens"])
        assert columns["text_offset"] == [sum(map(len, columns["tokens"][:at])) for at in range(num_tokens + 1)]
        assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    with live_server(prefix_cache=False, max_batched_tokens=512) as uncached:
        expected = uncached.complete(**asked)["choices"][0]["logprobs"]["token_logprobs"]
    for answer in answers:
        assert answer["choices"][0]["logprobs"]["token_logprobs"][1:] == pytest.approx(expected[1:], abs=1e-4)


def test_echo_without_logprobs_and_logprobs_0_are_as_asked(server: LiveServer) -> None:
    echoed = server.complete(prompt="The keeper", echo=True)["choices"][0]
    assert echoed["text"].startswith("The keeper")
    assert echoed["logprobs"] is None
    columns = server.complete(prompt="The keeper", logprobs=0, max_tokens=2)["choices"][0]["logprobs"]
    assert len(columns["token_logprobs"]) == 2


def test_a_streamed_echo_begins_with_the_prompt_and_its_rows(server: LiveServer) -> None:
    asked = {"model": "tiny", "prompt": "The keeper", "echo": True, "logprobs": 1, "max_tokens": 3, "temperature": 0}
    whole = server.openai().completions.create(**asked).choices[0]
    chunks = [chunk.choices[0] for chunk in server.openai().completions.create(**asked, stream=True)]
    assert chunks[0].text == "The keeper"
    assert "".join(chunk.text for chunk in chunks) == whole.text
    tokens = [token for chunk in chunks if chunk.logprobs for token in chunk.logprobs.tokens]
    offsets = [offset for chunk in chunks if chunk.logprobs for offset in chunk.logprobs.text_offset]
    assert (tokens, offsets) == (whole.logprobs.tokens, whole.logprobs.text_offset)


def test_health_says_loading_until_the_engine_is_warm() -> None:
    may_build = threading.Event()

    def build() -> Engine:
        assert may_build.wait(WAIT_S)
        return build_engine()

    with live_server(build, wait=False) as server:
        try:
            health = server.http.get("/health")
            assert (health.status_code, health.json()["status"]) == (503, "loading")
            for response in (server.post("/v1/chat/completions", **CHAT), server.http.get("/v1/models")):
                assert response.status_code == 503
                assert response.json()["error"]["code"] == "model_loading"
            assert server.http.get("/metrics").status_code == server.http.get("/version").status_code == 200
        finally:
            may_build.set()
        eventually(lambda: server.http.get("/health").status_code == 200)
        assert {server.engine.stats[name] for name in server.engine.stats if not name.startswith("pages")} == {0}
        assert server.engine.stats["pages_free"] == server.engine.stats["pages_total"]
        server.audit()


def test_a_reset_is_refused_while_a_request_runs_and_drops_pages_when_none_does() -> None:
    engine: list[StepwiseEngine] = []

    def build() -> Engine:
        engine.append(build_engine(StepwiseEngine))
        return engine[0]

    with live_server(build) as server:
        answers: list[dict[str, Any]] = []
        asked = {"prompt": [7] * 40, "max_tokens": 2, "ignore_eos": True}
        client = threading.Thread(target=lambda: answers.append(server.complete(**asked)))
        client.start()
        eventually(lambda: server.engine.stats["requests_waiting"] == 1)
        resets: list[Any] = []
        resetter = threading.Thread(target=lambda: resets.append(server.http.post("/reset_prefix_cache")))
        resetter.start()
        eventually(lambda: server.engine._commands.qsize() == 1)
        engine[0].permits.release(2)
        resetter.join(WAIT_S)
        client.join(WAIT_S)
        assert resets[0].status_code == 409
        assert resets[0].json()["error"]["code"] == "cache_busy"
        engine[0].permits.release(8)
        assert answers[0]["usage"]["completion_tokens"] == 2
        assert server.post("/reset_prefix_cache", cache_salt="other").json() == {"pages_dropped": 0}
        assert server.http.post("/reset_prefix_cache").json() == {"pages_dropped": 2}
        assert server.complete(**asked)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        server.audit()


def test_a_reset_of_one_salt_leaves_the_others(server: LiveServer) -> None:
    for salt in ({}, {"cache_salt": "a"}):
        server.complete(prompt=[7] * 40, max_tokens=1, **salt)
    assert server.http.post("/reset_prefix_cache?cache_salt=a").json() == {"pages_dropped": 2}
    assert server.complete(prompt=[7] * 40)["usage"]["prompt_tokens_details"]["cached_tokens"] == 32


def test_with_a_key_every_route_but_health_asks_for_it() -> None:
    with live_server(api_key="sesame") as server:
        assert server.http.get("/health").status_code == 200
        for path in ("/v1/models", "/metrics", "/version", "/nothing"):
            response = server.http.get(path)
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "invalid_api_key"
        for wrong in ("sesam", "sesame2", "Sesame"):
            with pytest.raises(openai.AuthenticationError):
                server.openai(wrong).models.list()
        for header in ("Basic sesame", "sesame", "Bearer", "Bearer sés\xff"):
            assert server.http.get("/v1/models", headers={"Authorization": header.encode("latin-1")}).status_code == 401
        assert server.openai("sesame").chat.completions.create(model="tiny", **CHAT).usage.completion_tokens == 4
        server.audit()


def test_clients_at_the_same_time_get_what_each_would_get_alone(server: LiveServer) -> None:
    prompts = [f"Page {number} of the book" for number in range(10)]
    alone = [server.complete(prompt=prompt, max_tokens=12)["choices"][0]["text"] for prompt in prompts]
    together: dict[int, str] = {}

    def ask(number: int) -> None:
        body = server.post("/v1/completions", prompt=prompts[number], max_tokens=12, temperature=0).json()
        together[number] = body["choices"][0]["text"]

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(WAIT_S)
    assert [together[number] for number in range(10)] == alone
