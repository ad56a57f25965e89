"""Bad input is answered in OpenAI's shape, and the engine never hears of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from minivllm.server.body import MAX_BODY_BYTES
from tests.server.live import CHAT, LiveServer, build_engine, live_server

VOCABULARY = 512
TOOL = {"type": "function", "function": {"name": "weather"}}


def refused(server: LiveServer, response: httpx.Response, status: int = 400) -> dict[str, Any]:
    """The error, after checking its shape, that nothing was queued, and that the next request works."""
    assert response.status_code == status, response.text[:500]
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["type"] == "invalid_request_error"
    error: dict[str, Any] = body["error"]
    assert error["message"]
    before = server.engine.stats["lookup_requests"]
    assert server.complete(prompt=[5, 6, 7], max_tokens=1)["usage"]["completion_tokens"] == 1
    assert server.engine.stats["lookup_requests"] == before + 1
    return error


BAD_PROMPTS = [
    [-1],
    [VOCABULARY],
    [2**63],
    [],
    "",
    [1.5],
    [True],
    [[1], [2]],
    [["a"]],
    ["a", "b"],
    [5, "a"],
    None,
    7,
    {"text": "a"},
    [[]],
    "\ud800",
]


@pytest.mark.parametrize("prompt", BAD_PROMPTS, ids=repr)
def test_a_prompt_that_is_no_text_and_no_token_ids_is_refused(server: LiveServer, prompt: Any) -> None:
    lookups = server.engine.stats["lookup_requests"]
    content = '{"prompt": "\\ud800"}' if prompt == "\ud800" else None
    headers = {"content-type": "application/json"}
    asked: dict[str, Any] = (
        {"json": {"prompt": prompt}} if content is None else {"content": content, "headers": headers}
    )
    response = server.http.post("/v1/completions", **asked)
    assert server.engine.stats["lookup_requests"] == lookups
    refused(server, response)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("stop_token_ids", [VOCABULARY + 5], "invalid_token_id"),
        ("logit_bias", {str(VOCABULARY + 5): 1}, "unsupported_parameter"),
        ("stop_token_ids", [True], "invalid_value"),
        ("temperature", -0.1, "invalid_value"),
        ("temperature", "0", "invalid_value"),
        ("top_p", 0, "invalid_value"),
        ("max_tokens", 0, "invalid_value"),
        ("max_tokens", -3, "invalid_value"),
        ("max_tokens", 2.0, "invalid_value"),
        ("seed", 1.5, "invalid_value"),
        ("stop", "", "invalid_value"),
        ("stop", [7], "invalid_value"),
        ("logprobs", 21, "invalid_value"),
        ("cache_salt", "", "invalid_value"),
        ("stream_options", {"include_usage": True}, "invalid_value"),
        ("n", 2, "unsupported_parameter"),
        ("n", True, "unsupported_parameter"),
        ("best_of", 2, "unsupported_parameter"),
        ("suffix", "x", "unsupported_parameter"),
        ("frequency_penalty", 0.5, "unsupported_parameter"),
        ("cache_prompt", False, "unsupported_parameter"),
    ],
)
def test_a_value_out_of_range_or_without_support_is_refused_by_name(
    server: LiveServer, field: str, value: Any, code: str
) -> None:
    error = refused(server, server.post("/v1/completions", prompt="a", **{field: value}))
    assert error["code"] == code
    assert error["param"] is not None and error["param"].startswith(field)
    assert field in error["message"] or "517" in error["message"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"role": "wizard", "content": "a"}]}, "role"),
        ({"messages": [{"role": "user"}]}, "no content"),
        ({"messages": [{"role": "user", "content": 7}]}, "content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "image_url"),
        ({"messages": [{"role": "user", "content": "a", "mood": "b"}]}, "mood"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [TOOL], "tool_choice": "required"}, "tool_choice"),
        ({"top_logprobs": 2}, "logprobs=true"),
        ({"max_tokens": 4, "max_completion_tokens": 5}, "differ"),
        ({"chat_template_kwargs": {"chat_template": "x"}}, "chat_template"),
    ],
)
def test_a_chat_that_cannot_be_rendered_as_asked_is_refused(
    server: LiveServer, change: dict[str, Any], named: str
) -> None:
    assert named in refused(server, server.post("/v1/chat/completions", **{**CHAT, **change}))["message"]


def test_a_misspelt_field_is_refused_with_the_nearest_known_one(server: LiveServer) -> None:
    error = refused(server, server.post("/v1/chat/completions", **CHAT, temprature=0.1))
    assert error["message"] == "unknown field 'temprature': did you mean 'temperature'?"
    assert error["param"] == "temprature"


def test_fields_that_ask_for_nothing_are_taken(server: LiveServer) -> None:
    neutral = {
        "n": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0.0,
        "logit_bias": {},
        "response_format": {"type": "text"},
    }
    assert server.chat(user="u", metadata={"a": "b"}, store=False, cache_prompt=True, seed=None, **neutral)


def test_a_body_that_is_no_json_object_is_refused(server: LiveServer) -> None:
    headers = {"content-type": "application/json"}
    for content in ("{b", "", "[]", '"a"', '{"prompt": NaN}', "[" * 100_000, b'{"prompt": "\xff"}'):
        error = refused(server, server.http.post("/v1/completions", content=content, headers=headers))
        assert error["code"] == "invalid_json"


def test_a_form_is_not_read_as_json(server: LiveServer) -> None:
    refused(server, server.http.post("/v1/completions", content='{"prompt": "a"}'), 415)


def test_a_body_beyond_the_limit_is_refused_announced_or_not(server: LiveServer) -> None:
    headers = {"content-type": "application/json"}
    large = b'"' + b"a" * MAX_BODY_BYTES + b'"'
    refused(server, server.http.post("/v1/completions", content=large, headers=headers), 413)
    pieces = (large[at : at + 2**20] for at in range(0, len(large), 2**20))
    refused(server, server.http.post("/v1/completions", content=pieces, headers=headers), 413)


def test_unknown_routes_and_methods_answer_in_the_same_shape(server: LiveServer) -> None:
    assert "/v1/nothing" in refused(server, server.http.get("/v1/nothing"), 404)["message"]
    response = server.http.get("/v1/completions")
    assert response.headers["allow"] == "POST"
    assert "POST" in refused(server, response, 405)["message"]


def test_a_request_that_can_never_fit_is_refused_at_once() -> None:
    """PP-10: KV is needed for prompt + max_tokens - 1 tokens, of 128 here."""
    with live_server(num_pages=8) as server:
        for num_prompt_tokens, max_tokens in ((127, 1), (127, 2), (128, 1)):
            body = server.complete(prompt=[9] * num_prompt_tokens, max_tokens=max_tokens, ignore_eos=True)
            assert body["usage"]["completion_tokens"] == max_tokens
        for num_prompt_tokens, max_tokens in ((128, 2), (129, 1), (129, 2)):
            response = server.post("/v1/completions", prompt=[9] * num_prompt_tokens, max_tokens=max_tokens)
            assert refused(server, response)["code"] == "context_length_exceeded"
        response = server.post("/v1/chat/completions", messages=[{"role": "user", "content": "page " * 200}])
        assert refused(server, response)["code"] == "context_length_exceeded"
        server.audit()


def test_a_template_that_refuses_a_role_is_the_clients_fault() -> None:
    """SV-07: 400 with the template's own words, not 500."""

    def build() -> Any:
        engine = build_engine()
        engine.tokenizer._tokenizer.chat_template = (
            "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
            "{% for message in messages %}{{ message.content }}{% endfor %}"
        )
        return engine

    with live_server(build) as server:
        response = server.post("/v1/chat/completions", messages=[{"role": "system", "content": "a"}])
        assert "System role not supported" in refused(server, response)["message"]
        assert "tools" in refused(server, server.post("/v1/chat/completions", **CHAT, tools=[TOOL]))["message"]
        assert server.chat()
        server.audit()
