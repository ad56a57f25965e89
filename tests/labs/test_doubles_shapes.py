"""A double says what its server says: fields, their order of types, errors, routes and metric names.

The expected names were read from answers of real servers (vLLM 0.32.0, llama-server build 11434, mlx-lm 0.32.2), except
SGLang's, which are from its documentation and sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from labbook import metrics
from labs.kit.doubles import Double, Faults, double
from tests.labs.doubles_probe import FLAGS, A, B, body_of, chat, counted, get, post

VLLM_CHOICE = "index message logprobs finish_reason stop_reason token_ids routed_experts"
VLLM_MESSAGE = "role content refusal annotations audio function_call reasoning"
TIMINGS = (
    "cache_n prompt_n prompt_ms prompt_per_token_ms prompt_per_second "
    "predicted_n predicted_ms predicted_per_token_ms predicted_per_second"
)

WHOLE = {
    "vllm": (
        "id object created model choices service_tier system_fingerprint usage prompt_logprobs prompt_token_ids "
        "prompt_text kv_transfer_params ec_transfer_params metrics"
    ),
    "sglang": "id object created model choices usage metadata",
    "llama-server": "choices created model system_fingerprint object usage id timings",
    "mlx-lm": "id system_fingerprint object model created choices usage",
}
CHOICE = {
    "vllm": VLLM_CHOICE,
    "sglang": "index message logprobs finish_reason matched_stop",
    "llama-server": "finish_reason index message",
    "mlx-lm": "index finish_reason message",
}
MESSAGE = {
    "vllm": VLLM_MESSAGE,
    "sglang": "role content reasoning_content tool_calls",
    "llama-server": "role content",
    "mlx-lm": "role content",
}
USAGE = {
    "vllm": "prompt_tokens total_tokens completion_tokens prompt_tokens_details completion_tokens_details",
    "sglang": "prompt_tokens total_tokens completion_tokens prompt_tokens_details reasoning_tokens",
    "llama-server": "completion_tokens prompt_tokens total_tokens prompt_tokens_details",
    "mlx-lm": "prompt_tokens completion_tokens total_tokens prompt_tokens_details",
}
DETAILS = {
    "vllm": {"cached_tokens": 32, "created_cache_tokens": 0, "multimodal_tokens": None},
    "sglang": {"cached_tokens": 45},
    "llama-server": {"cached_tokens": 45},
    "mlx-lm": {"cached_tokens": 45},
}


@pytest.fixture(scope="module", params=list(FLAGS))
def server(request: pytest.FixtureRequest) -> Iterator[Double]:
    with double(request.param, flags=FLAGS[request.param]) as running:
        chat(running, A)
        yield running


@pytest.fixture
def name(server: Double) -> str:
    return server.dialect.name


def keys(value: dict[str, Any]) -> set[str]:
    return set(value)


def words(text: str) -> set[str]:
    return set(text.split())


def test_a_whole_answer_has_the_servers_fields(server: Double, name: str) -> None:
    payload = chat(server, A, stream=False).payloads[0]
    choice = payload["choices"][0]
    assert keys(payload) == words(WHOLE[name])
    assert keys(choice) == words(CHOICE[name])
    assert keys(choice["message"]) == words(MESSAGE[name])
    assert keys(payload["usage"]) == words(USAGE[name])
    assert payload["object"] == "chat.completion" and choice["finish_reason"] == "length"


def test_an_equal_prompt_is_reused_up_to_its_last_whole_page_before_the_last_token(server: Double, name: str) -> None:
    """The captures: 256 of 380 tokens in blocks of 128, and 379 of 380 token by token."""
    usage = chat(server, A, stream=False).usage
    assert usage and usage["prompt_tokens"] == 46
    assert usage["prompt_tokens_details"] == DETAILS[name]
    assert usage["completion_tokens"] == 4 and usage["total_tokens"] == 50


def test_a_stream_and_a_whole_answer_carry_the_same_text_and_counts(server: Double, name: str) -> None:
    whole, streamed = chat(server, A, stream=False), chat(server, A)
    assert whole.text == streamed.text and whole.fields == streamed.fields == {"content"}
    assert whole.cached_tokens == streamed.cached_tokens == DETAILS[name]["cached_tokens"]


OPENING = {
    "vllm": {"role": "assistant", "content": ""},
    "sglang": {"role": "assistant", "content": "", "reasoning_content": None, "tool_calls": None},
    "llama-server": {"role": "assistant", "content": None},
}
ENDING = {
    "sglang": {"role": None, "content": None, "reasoning_content": None, "tool_calls": None},
    "llama-server": {},
    "mlx-lm": {"role": "assistant"},
}


def test_a_stream_opens_and_ends_as_the_servers_does(server: Double, name: str) -> None:
    heard = chat(server, A)
    *chunks, usage = heard.payloads
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["length"]
    assert usage["choices"] == [] and usage["usage"]
    if name == "vllm":  # the last text and the reason come together
        assert set(deltas[-1]) == {"content"} and "stop_reason" in chunks[-1]["choices"][0]
    else:
        assert deltas[-1] == ENDING[name]
    if name == "mlx-lm":  # no opening: the role is in every chunk, and a comment tells of the prompt before
        assert all(delta["role"] == "assistant" for delta in deltas)
        assert heard.raw.startswith(b": keepalive 1/1\n\n") and usage["object"] == "chat.completion"
    else:
        assert deltas[0] == OPENING[name] and b": " not in heard.raw[:2]


def test_the_chunk_of_the_usage_has_the_servers_fields(server: Double, name: str) -> None:
    *_, usage = chat(server, A).payloads
    expected = {
        "vllm": "id object created model choices usage system_fingerprint",
        "sglang": "id object created model choices usage",
        "llama-server": "choices created id model system_fingerprint object usage timings",
        "mlx-lm": "id system_fingerprint object model created choices usage",
    }
    assert keys(usage) == words(expected[name])


def test_without_include_usage_a_stream_ends_without_it(server: Double, name: str) -> None:
    heard = chat(server, A, stream_options={})
    assert heard.usage is None
    assert ("timings" in heard.payloads[-1]) == (name == "llama-server")


ERRORS = {
    "vllm": {"message", "type", "param", "code"},
    "llama-server": {"code", "message", "type"},
}


def error_of(response: requests.Response) -> Any:
    return response.json()["error"]


def test_broken_json_is_answered_in_the_servers_shape(server: Double, name: str) -> None:
    url = f"{server.base_url}/chat/completions"
    response = requests.post(url, data=b"{bad", headers={"Content-Type": "application/json"}, timeout=30)
    assert response.status_code == 400
    if name == "mlx-lm":
        quoted = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        assert response.json() == {"error": f"Invalid JSON in request body: {quoted}"}
    elif name == "sglang":
        assert response.json()["object"] == "error" and response.json()["code"] == 400
    else:
        assert keys(error_of(response)) == ERRORS[name] and error_of(response)["code"] == 400
    if name == "llama-server":
        assert error_of(response)["message"].startswith(
            "[json.exception.parse_error.101] parse error at line 1, column 2"
        )
    if name == "vllm":
        assert error_of(response)["param"] == "body.1" and error_of(response)["type"] == "Bad Request"


def test_another_models_name_is_refused_where_the_server_refuses_it(server: Double, name: str) -> None:
    response = requests.post(
        f"{server.base_url}/chat/completions", json=body_of(A, "Why?") | {"model": "nope"}, timeout=30
    )
    if name == "vllm":
        message = "The model `nope` does not exist. Valid aliases: tiny."
        expected = {"message": message, "type": "NotFoundError", "param": "model", "code": 404}
        assert (response.status_code, error_of(response)) == (404, expected)
    elif name == "mlx-lm":
        assert response.status_code == 404 and isinstance(error_of(response), str)
    else:
        assert response.status_code == 200


NO_ROUTE: dict[str, Any] = {
    "vllm": b'{"detail":"Not Found"}',
    "sglang": b'{"detail":"Not Found"}',
    "llama-server": b'{"error":{"message":"File Not Found","type":"not_found_error","code":404}}',
    "mlx-lm": b"Not Found",
}


def test_an_address_that_is_not_there_is_answered_in_the_servers_words(server: Double, name: str) -> None:
    response = get(server, "/v1/nothing")
    assert (response.status_code, response.content) == (404, NO_ROUTE[name])


def test_only_the_servers_own_addresses_are_there(server: Double, name: str) -> None:
    paths = ("/health", "/version", "/props", "/slots", "/metrics", "/v1/models")
    there = {path for path in paths if get(server, path).status_code == 200}
    expected = {
        "vllm": {"/version", "/metrics"},
        "sglang": {"/metrics"},
        "llama-server": {"/props", "/slots", "/metrics"},
        "mlx-lm": set(),
    }
    assert there == expected[name] | {"/health", "/v1/models"}
    assert get(server, "/v1/models").json()["data"][0]["id"] == "tiny"
    health = get(server, "/health").content
    assert health == {"llama-server": b'{"status":"ok"}', "mlx-lm": b'{"status": "ok"}'}.get(name, b"")


def test_tokens_are_told_in_the_servers_shape(server: Double, name: str) -> None:
    text = "where is the page"
    fields = {"vllm": "count max_model_len tokens token_strs", "sglang": "tokens count max_model_len"}
    if name == "mlx-lm":
        assert post(server, "/tokenize", {"prompt": text}).content == b"Not Found"
    elif name == "llama-server":
        tokens = post(server, "/tokenize", {"content": text}).json()
        assert keys(tokens) == {"tokens"} and tokens["tokens"]
        assert post(server, "/detokenize", tokens).json() == {"content": text}
        assert post(server, "/tokenize", {"messages": body_of(A, "Why?")["messages"]}).json() == {"tokens": []}
    else:
        told = post(server, "/tokenize", {"messages": body_of(A, "Why?")["messages"]}).json()
        assert keys(told) == words(fields[name]) and told["count"] == len(told["tokens"]) == 46


def test_headers_are_the_servers(server: Double, name: str) -> None:
    response = requests.post(f"{server.base_url}/chat/completions", json=body_of(A, "Why?", stream=True), timeout=30)
    by = {"vllm": "uvicorn", "sglang": "uvicorn", "llama-server": "llama.cpp", "mlx-lm": "BaseHTTP/0.6 Python"}
    assert response.headers["Server"] == by[name]
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.raw.version == (10 if name == "mlx-lm" else 11)
    assert ("Cache-Control" in response.headers) == (name == "mlx-lm")


COUNTERS = {
    "vllm": ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
    "sglang": ("sglang:cached_tokens_total", "sglang:prompt_tokens_total"),
    "llama-server": (
        "llamacpp:prompt_tokens_cached_total",
        "llamacpp:prompt_tokens_cached_total + llamacpp:prompt_tokens_total",
    ),
}


def test_labbook_reads_the_counters_by_the_servers_names(server: Double, name: str) -> None:
    if name == "mlx-lm":
        assert (get(server, "/metrics").status_code, get(server, "/metrics").content) == (404, b"Not Found")
        return
    before, heard, after = counted(server), chat(server, B), counted(server)
    reading = metrics.read(get(server, "/metrics").text)
    assert reading.names == dict(zip(("hits", "queries"), COUNTERS[name], strict=True))
    assert reading.rejected_lines == ()
    gained = [int((last or 0) - (first or 0)) for first, last in zip(before, after, strict=True)]
    assert gained == [heard.prompt_tokens, heard.cached_tokens or 0]


def test_vllms_page_holds_the_twins_that_a_loose_pattern_would_add() -> None:
    with double("vllm") as server:
        page = get(server, "/metrics").text
    names = {sample.name for sample in metrics.parse(page)[0]}
    assert {
        f"vllm:{twin}prefix_cache_{kind}_{end}"
        for twin in ("", "external_")
        for kind in ("queries", "hits")
        for end in ("total", "created")
    } < names
    assert {"vllm:prompt_tokens_cached_total", "vllm:prompt_tokens_by_source_total", "vllm:mm_cache_hits_total"} < names
    reading = metrics.read(page)
    assert reading.page_tokens == 16 and reading.started_at_s == pytest.approx(server.tally.started_at_s)


def test_llama_servers_page_counts_computed_tokens_apart_and_has_no_labels() -> None:
    with double("llama-server", flags=["--metrics"]) as server:
        chat(server, A), chat(server, A)
        lines = get(server, "/metrics").text.splitlines()
    assert "llamacpp:prompt_tokens_total 47" in lines and "llamacpp:prompt_tokens_cached_total 45" in lines
    assert not [line for line in lines if "{" in line or line.startswith("# HELP")]


def test_sglangs_hit_counter_has_no_sample_until_something_was_reused() -> None:
    with double("sglang", flags=FLAGS["sglang"] + ["--skip-server-warmup"]) as server:
        first = chat(server, A)
        assert "\nsglang:cached_tokens_total{" not in get(server, "/metrics").text
        second = chat(server, A)
        assert (
            '\nsglang:cached_tokens_total{model_name="tiny",cache_source="device"} 45.0' in get(server, "/metrics").text
        )
    assert (first.usage or {})["prompt_tokens_details"] is None and second.cached_tokens == 45


def test_sglang_answers_a_prompt_of_its_own_before_it_serves() -> None:
    with double("sglang", flags=FLAGS["sglang"]) as server:
        page = get(server, "/metrics").text
    assert 'sglang:num_requests_total{model_name="tiny"} 1.0' in page


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_usage_tells_no_details_unless_a_flag_asks_for_them(name: str) -> None:
    with double(name) as server:
        whole, again, streamed = chat(server, A, stream=False), chat(server, A, stream=False), chat(server, A)
    assert [one.cached_tokens for one in (whole, again, streamed)] == [None] * 3
    assert (again.usage or {})["prompt_tokens_details"] is None


def test_without_their_flags_llama_server_and_sglang_have_no_metrics() -> None:
    with double("llama-server") as llama, double("sglang") as sglang:
        response = get(llama, "/metrics")
        message = "This server does not support metrics endpoint. Start it with `--metrics`"
        assert response.status_code == 501
        assert error_of(response) == {"code": 501, "message": message, "type": "not_supported_error"}
        assert get(sglang, "/metrics").status_code == 404


def test_sglang_flushes_its_cache() -> None:
    with double("sglang", flags=FLAGS["sglang"]) as server:
        chat(server, A)
        assert post(server, "/flush_cache", {}).status_code == 200
        assert not chat(server, A).cached_tokens and chat(server, A).cached_tokens == 45


def test_llama_server_tells_its_slots_and_its_template() -> None:
    with double("llama-server", flags=["--parallel", "2", "--metrics"]) as server:
        chat(server, A, id_slot=1)
        slots, props = get(server, "/slots").json(), get(server, "/props").json()
        rendered = post(server, "/apply-template", {"messages": body_of(A, "Why?")["messages"]}).json()["prompt"]
        tokens = post(server, "/tokenize", {"content": rendered}).json()["tokens"]
        action = post(server, "/slots/0?action=save", {"filename": "a.bin"})
    told = "id n_ctx speculative is_processing id_task n_prompt_tokens n_prompt_tokens_processed n_prompt_tokens_cache"
    assert [keys(slot) for slot in slots] == [words(told + " params next_token")] * 2
    assert [slot["n_prompt_tokens"] for slot in slots] == [0, 46 + 4]
    assert props["total_slots"] == 2 and props["endpoint_metrics"] is props["endpoint_slots"] is True
    assert props["model_alias"] == "tiny" and "message['content']" in props["chat_template"]
    assert len(tokens) == 46
    assert action.status_code == 501 and "--slot-save-path" in error_of(action)["message"]


def test_llama_server_times_what_it_computed() -> None:
    with double("llama-server") as server:
        cold, warm = (chat(server, A, stream=False).payloads[0]["timings"] for _ in range(2))
    assert keys(cold) == words(TIMINGS)
    assert [(t["cache_n"], t["prompt_n"], t["predicted_n"]) for t in (cold, warm)] == [(0, 46, 4), (45, 1, 4)]


def test_llama_server_reuses_nothing_for_a_request_that_says_so() -> None:
    with double("llama-server") as server:
        told = [chat(server, A, cache_prompt=wanted).cached_tokens for wanted in (True, False, True)]
    assert told == [0, 0, 45]


def test_a_block_of_128_tokens_leaves_more_to_compute() -> None:
    with double("vllm", flags=["--enable-prompt-tokens-details", "--block-size", "128"]) as server:
        cold, warm = chat(server, A * 6, stream=False), chat(server, A * 6, stream=False)
        assert metrics.read(get(server, "/metrics").text).page_tokens == 128
    assert cold.prompt_tokens and 128 < cold.prompt_tokens < 256
    created = {"created_cache_tokens": 128, "multimodal_tokens": None}
    assert (cold.usage or {})["prompt_tokens_details"] == {"cached_tokens": 0, **created}
    assert warm.cached_tokens == 128


@pytest.mark.parametrize("name", list(FLAGS))
def test_a_reasoning_channel_has_the_servers_name(name: str) -> None:
    with double(name, faults=Faults(reasoning=True)) as server:
        streamed, whole = chat(server, A), chat(server, A, stream=False)
    field = "reasoning" if name in ("vllm", "mlx-lm") else "reasoning_content"
    assert streamed.fields == whole.fields == {field} and whole.payloads[0]["choices"][0]["message"]["content"] is None
