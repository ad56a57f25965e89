"""The official client works against this server, and gets its typed exceptions."""

from __future__ import annotations

import math

import openai
import pytest

from tests.server.live import LiveServer, live_server

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a page?"}]


def test_a_chat_answers_in_the_clients_types(server: LiveServer) -> None:
    answer = server.openai().chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=5, temperature=0)
    assert answer.id.startswith("chatcmpl-")
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 5
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 5
    assert answer.system_fingerprint.startswith("minivllm-")


def test_a_stream_spells_the_whole_answer_and_ends_with_usage(server: LiveServer) -> None:
    client = server.openai()
    asked = {"model": "tiny", "messages": MESSAGES, "max_completion_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:-1])
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
    assert text == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks[-3:-1]] == [None, "length"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 12
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_a_completion_streams_the_text_of_the_whole(server: LiveServer) -> None:
    client = server.openai()
    asked = {"model": "tiny", "prompt": "The keeper", "max_tokens": 9, "temperature": 0}
    whole = client.completions.create(**asked)
    chunks = list(client.completions.create(**asked, stream=True))
    assert whole.id.startswith("cmpl-")
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_completion_without_a_limit_has_sixteen_tokens(server: LiveServer) -> None:
    answer = server.openai().completions.create(model="tiny", prompt="One page", extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 16


def test_a_chat_without_a_limit_gets_what_fits() -> None:
    with live_server(max_model_len=64, num_pages=8) as server:
        body = server.chat(max_tokens=None, ignore_eos=True)
        server.audit()
    assert body["usage"]["total_tokens"] == 65  # the last token needs no KV
    assert body["choices"][0]["finish_reason"] == "length"


def test_the_same_seed_gives_the_same_text_and_another_seed_another(server: LiveServer) -> None:
    def text(seed: int) -> str:
        return str(server.chat(temperature=1.0, seed=seed, max_tokens=24)["choices"][0]["message"]["content"])

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_chat_logprobs_are_those_of_the_tokens(server: LiveServer) -> None:
    asked = {"model": "tiny", "messages": MESSAGES, "max_tokens": 4, "temperature": 0, "logprobs": True}
    answer = server.openai().chat.completions.create(**asked, top_logprobs=3)
    rows = answer.choices[0].logprobs.content
    assert "".join(row.token for row in rows) == answer.choices[0].message.content
    for row in rows:
        assert len(row.top_logprobs) == 3
        assert row.top_logprobs[0].logprob == row.logprob <= 0  # greedy: the token is the best one
        assert math.fsum(math.exp(top.logprob) for top in row.top_logprobs) <= 1
        assert bytes(row.bytes).decode() == row.token


def test_streamed_logprobs_are_those_of_the_whole(server: LiveServer) -> None:
    asked = {"model": "tiny", "messages": MESSAGES, "max_tokens": 6, "temperature": 0, "logprobs": True}
    client = server.openai()
    whole = client.chat.completions.create(**asked).choices[0].logprobs.content
    chunks = client.chat.completions.create(**asked, stream=True)
    rows = [row for chunk in chunks if chunk.choices[0].logprobs for row in chunk.choices[0].logprobs.content]
    assert [row.token for row in rows] == [row.token for row in whole]
    assert [row.logprob for row in rows] == pytest.approx([row.logprob for row in whole], abs=1e-4)


def test_the_model_list_names_the_served_model(server: LiveServer) -> None:
    client = server.openai()
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").id == "tiny"


def test_an_unknown_model_is_not_found(server: LiveServer) -> None:
    with pytest.raises(openai.NotFoundError, match=r"'nope' does not exist.*'tiny'") as caught:
        server.openai().chat.completions.create(model="nope", messages=MESSAGES)
    assert caught.value.code == "model_not_found"


def test_bad_values_are_bad_requests(server: LiveServer) -> None:
    with pytest.raises(openai.BadRequestError, match="temperature") as caught:
        server.openai().chat.completions.create(model="tiny", messages=MESSAGES, temperature=-1)
    assert caught.value.param == "temperature"


def test_tools_reach_the_template_that_takes_them(server: LiveServer) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    plain = server.chat()["usage"]["prompt_tokens"]
    assert server.chat(tools=[tool])["usage"]["prompt_tokens"] > plain
    assert server.chat(tools=[tool], tool_choice="none")["usage"]["prompt_tokens"] == plain


def test_text_parts_are_joined_and_sent_back_answers_are_taken(server: LiveServer) -> None:
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "a page?"}]
    joined = server.chat(messages=[{"role": "user", "content": "What is\na page?"}])
    in_parts = server.chat(messages=[{"role": "user", "content": parts}])
    assert in_parts["choices"][0]["message"] == joined["choices"][0]["message"]
    history = [
        {"role": "user", "content": parts},
        in_parts["choices"][0]["message"],
        {"role": "user", "content": "Why?"},
    ]
    assert server.chat(messages=history)["usage"]["completion_tokens"] == 4


def test_timings_count_what_usage_counts(server: LiveServer) -> None:
    server.complete(prompt=list(range(5, 45)))
    body = server.complete(prompt=list(range(5, 45)), max_tokens=3)
    assert body["timings"]["cache_n"] == body["usage"]["prompt_tokens_details"]["cached_tokens"] == 32
    assert body["timings"]["prompt_n"] == 8
    assert body["timings"]["predicted_n"] == 3
    assert body["timings"]["prompt_ms"] > 0
    assert server.complete(prompt=[5, 6], max_tokens=1)["timings"]["predicted_per_second"] is None
