"""Bad input is answered in OpenAI's shape, and the engine never hears of it."""

from __future__ import annotations

import json
import logging
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


def must_not_be_called(*_: Any, **__: Any) -> None:
    raise AssertionError("called")


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
        ("cache_prompt", "no", "invalid_value"),
        ("id_slot", 99, "invalid_request"),
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


@pytest.mark.parametrize(
    "content",
    [
        b'{"prompt": "a\xed\xa0\x80b"}',
        b'{"prompt": "a", "a\xed\xa0\x80": 1}',
        b'{"prompt": "a", "stop": "\xed\xa0\x80"}',
        b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
        b'{"prompt": "a", "\\ud800": 1}',
        b'{"prompt": "a", "stop": ["\\udfff"]}',
        b'{"prompt": "a", "metadata": {"a": [{"\\ud800": 1}]}}',
        '{"prompt": "a"}'.encode("utf-16"),
        r'{"prompt": "\ud800"}'.encode("utf-16"),
        r'{"prompt": "\ud800"}'.encode("utf-16-le"),
        '{"prompt": "a"}'.encode("utf-32"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/tokenize"])
def test_half_a_character_is_refused_however_it_is_spelt(server: LiveServer, path: str, content: bytes) -> None:
    response = server.http.post(path, content=content, headers={"content-type": "application/json"})
    assert refused(server, response)["code"] == "invalid_json"


def test_a_byte_order_mark_and_a_whole_pair_are_read(server: LiveServer) -> None:
    for content in (b'\xef\xbb\xbf{"prompt": "a"}', rb'{"prompt": "\ud83d\ude00"}'):
        response = server.http.post("/tokenize", content=content, headers={"content-type": "application/json"})
        assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    "content",
    [
        '{"prompt": "a", "max_tokens": 1, "max_tokens": 2}',
        '{"prompt": "a", "metadata": {"max_tokens": 1, "max_tokens": 1}}',
    ],
)
def test_a_key_that_is_given_twice_is_refused_by_name(server: LiveServer, content: str) -> None:
    assert len(json.loads(content)) == 2
    response = server.http.post("/v1/completions", content=content, headers={"content-type": "application/json"})
    error = refused(server, response)
    assert error["code"] == "invalid_json" and "'max_tokens'" in error["message"]


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


def test_a_text_that_no_prompt_can_be_is_refused_without_being_tokenized(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = server.engine.facts
    assert facts is not None
    text = "a" * (facts.max_model_len * facts.tokenizer.max_chars_per_token + 1)
    messages = [{"role": "user", "content": text}]
    with monkeypatch.context() as patched:
        patched.setattr(facts.tokenizer, "encode", must_not_be_called)
        responses = [
            server.post("/v1/completions", prompt=text, max_tokens=1),
            server.post("/v1/chat/completions", messages=messages),
            server.post("/tokenize", prompt=text),
            server.post("/tokenize", messages=messages),
        ]
    errors = [refused(server, response) for response in responses]
    assert {error["code"] for error in errors} == {"context_length_exceeded"}
    assert [error["param"] for error in errors] == ["prompt", "messages", "prompt", "messages"]


def test_a_text_of_the_longest_words_that_just_fits_is_served() -> None:
    with live_server(num_pages=8) as server:
        assert server.complete(prompt=" questions" * 127, max_tokens=1)["usage"]["prompt_tokens"] == 128
        for count in (128, 129):
            response = server.post("/v1/completions", prompt=" questions" * count, max_tokens=1)
            assert refused(server, response)["code"] == "context_length_exceeded"


def test_a_text_beyond_the_context_is_counted_without_a_warning() -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger("transformers").addHandler(handler)
    try:
        with live_server(num_pages=600) as server:
            assert server.post("/tokenize", prompt=" a" * 9000).json()["count"] > 9000
    finally:
        logging.getLogger("transformers").removeHandler(handler)
    assert records == []


def test_too_many_stops_are_refused_before_the_prompt_is_tokenized(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = server.engine.facts
    assert facts is not None
    many: list[dict[str, Any]] = [{"stop": ["a"] * 65}, {"stop_token_ids": [7] * 1025}]
    with monkeypatch.context() as patched:
        patched.setattr(facts.tokenizer, "encode", must_not_be_called)
        responses = [server.post("/v1/completions", prompt="a", **field) for field in many]
        responses += [server.post("/v1/chat/completions", **CHAT, **field) for field in many]
    params = [refused(server, response)["param"] for response in responses]
    assert params == ["stop", "stop_token_ids"] * 2


def test_an_error_never_sends_a_large_input_back(server: LiveServer) -> None:
    large = "a" * 1_000_000
    bodies: list[dict[str, Any]] = [
        {"prompt": "a", large: 1},
        {"prompt": "a", "model": large},
        {"prompt": "a", "stop": [7, large]},
        {"prompt": [large]},
        {"prompt": [5], "stop_token_ids": [large]},
        {"prompt": [5], "max_tokens": int("9" * 4000)},
    ]
    for body in bodies:
        response = server.post("/v1/completions", **body)
        refused(server, response, response.status_code)
        assert response.status_code in (400, 404) and len(response.content) < 2000
    twice = f'{{"{large}": 1, "{large}": 2}}'
    response = server.http.post("/v1/completions", content=twice, headers={"content-type": "application/json"})
    refused(server, response)
    assert len(response.content) < 2000


@pytest.mark.parametrize("seed", [-(2**63) - 1, 2**64])
def test_a_seed_of_more_than_64_bits_is_refused(server: LiveServer, seed: int) -> None:
    error = refused(server, server.post("/v1/completions", prompt="a", seed=seed))
    assert error["param"] == "seed" and error["code"] == "invalid_value"


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**63, 2**64 - 1])
def test_every_seed_of_64_bits_is_taken(server: LiveServer, seed: int) -> None:
    assert server.complete(prompt="a", seed=seed, temperature=1)


@pytest.mark.parametrize("top_logprobs", [21, -1])
def test_a_wrong_number_of_alternatives_is_refused_by_the_name_that_was_given(
    server: LiveServer, top_logprobs: int
) -> None:
    asked = {**CHAT, "logprobs": True, "top_logprobs": top_logprobs}
    error = refused(server, server.post("/v1/chat/completions", **asked))
    assert error["param"] == "top_logprobs" and f"top_logprobs={top_logprobs}" in error["message"]


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
