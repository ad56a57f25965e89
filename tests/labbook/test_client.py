"""One request, timed, against servers that misbehave (MS-04 to MS-14)."""

import gzip
import json

import pytest

from labbook.answer import Answer, error_text, token_counts
from labbook.client import Client
from labbook.errors import ServerError, UsageError

MESSAGES = [{"role": "system", "content": "abc " * 40}, {"role": "user", "content": "why?"}]


def ask(state, **options) -> Answer:
    client = Client(state.url, **{"timeout_s": 10.0, **options})
    try:
        return client.chat("m1", MESSAGES, 8)
    finally:
        client.close()


def test_usage_and_first_token_are_read_from_a_stream(serve) -> None:
    answer = ask(serve())
    assert answer.streamed and answer.first_field == "content" and answer.finish_reason == "length"
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (46, 2, 0)
    assert answer.ttft_s is not None and 0 < answer.ttft_s <= answer.total_s


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_the_answer_does_not_depend_on_chunks_or_line_ends(serve, chunk_bytes: int, line_end: bytes) -> None:
    answer = ask(serve(chunk_bytes=chunk_bytes, line_end=line_end))
    assert (answer.first_field, answer.prompt_tokens) == ("content", 46)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_a_reasoning_token_is_a_first_token(serve, name: str) -> None:
    answer = ask(serve(token_field=name))
    assert answer.first_field == name
    assert answer.ttft_s is not None


def test_role_chunks_and_keep_alives_are_no_first_token(serve) -> None:
    answer = ask(serve(token_field="nothing_known"))
    assert answer.ttft_s is None
    assert answer.why["ttft_s"] == "no chunk of the stream carried text"


def test_the_first_token_is_timed_when_it_comes_and_the_stream_is_drained_to_its_end() -> None:
    client = Client("http://127.0.0.1:1")
    heard = client._listen(
        iter(
            [
                (1.0, b'data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n\n'),
                (2.0, b': keep-alive\n\ndata: {"choices":[{"delta":{"content":""}}]}\n\n'),
                (3.0, b'data: {"choices":[{"delta":{"reasoning'),
                (5.0, b'":"hm"}}]}\n\n'),
                (6.0, b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'),
                (9.0, b": bye\n\n"),
            ]
        )
    )
    client.close()
    assert (heard.first_at_s, heard.first_field, heard.ended_at_s) == (5.0, "reasoning", 9.0)
    answer = heard.answer(started_s=0.5, ended_s=9.0, body_sha256="")
    assert (answer.ttft_s, answer.total_s) == (4.5, 8.5)


def test_a_server_that_does_not_stream_is_timed_as_a_whole(serve) -> None:
    answer = ask(serve(streams=False))
    assert (answer.streamed, answer.ttft_s, answer.cached_tokens) == (False, None, 0)
    assert answer.why["ttft_s"] == "the answer was not streamed"


def test_timings_tell_cached_tokens_where_usage_does_not(serve) -> None:
    answer = ask(serve(cached_tokens=False, timings=True))
    assert (answer.cached_tokens, answer.cached_source) == (0, "timings.cache_n")
    assert answer.timings is not None and answer.timings["prompt_n"] == 46


def test_absent_counts_are_none_with_a_reason(serve) -> None:
    answer = ask(serve(usage=False))
    assert (answer.prompt_tokens, answer.cached_tokens) == (None, None)
    assert answer.why["cached_tokens"] == "the server sent no usage object"
    answer = ask(serve(cached_tokens=False))
    assert (answer.prompt_tokens, answer.cached_tokens) == (46, None)
    assert answer.why["cached_tokens"] == "usage holds no prompt_tokens_details"


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 32.0}}, 32),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": None}}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": None}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 41}}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": -1}}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": True}}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": "32"}}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": float("nan")}}, None),
        ({"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": float("inf")}}, None),
        ({"prompt_tokens": 10**400, "prompt_tokens_details": {"cached_tokens": 10**400}}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_cached_tokens_are_a_number_or_none_and_zero_only_when_told(usage: object, cached: int | None) -> None:
    counts = token_counts(usage, None)
    assert counts.cached_tokens == cached
    assert ("cached_tokens" in counts.why) is (cached is None)


@pytest.mark.parametrize("field", ["seed", "temperature", "max_tokens", "stream_options"])
@pytest.mark.parametrize("named", [True, False])
def test_one_refused_field_costs_only_itself(serve, field: str, named: bool) -> None:
    state = serve(refused_fields=(field,), refusal_names_field=named)
    client = Client(state.url, timeout_s=10.0)
    client.chat("m1", MESSAGES, 8)
    assert client.dropped_fields == (field,)
    client.chat("m1", MESSAGES, 8)
    client.close()
    sent = state.bodies[-1]
    assert field not in sent and sent["stream"] is True
    assert len(state.bodies) == 2  # the second request did not try again
    assert sent.get("max_completion_tokens", sent.get("max_tokens")) == 8


def test_two_fields_refused_by_name_cost_only_themselves(serve) -> None:
    state = serve(refused_fields=("max_tokens", "seed"))
    client = Client(state.url, timeout_s=10.0)
    client.chat("m1", MESSAGES, 8)
    client.close()
    assert client.dropped_fields == ("max_tokens", "seed")
    assert "stream_options" in state.bodies[-1]


def test_fields_refused_without_a_name_are_left_out_until_it_works(serve) -> None:
    state = serve(refused_fields=("temperature", "seed"), refusal_names_field=False)
    client = Client(state.url, timeout_s=10.0)
    client.chat("m1", MESSAGES, 8)
    client.close()
    assert client.dropped_fields == ("seed", "temperature")


def test_a_refused_system_message_becomes_part_of_the_user_message(serve) -> None:
    state = serve(refuses_system=True)
    ask(state)
    sent = state.bodies[-1]["messages"]
    assert [message["role"] for message in sent] == ["user"]
    assert sent[0]["content"] == MESSAGES[0]["content"] + "\n\n" + MESSAGES[1]["content"]


def test_a_body_refused_for_another_reason_keeps_the_first_reason(serve) -> None:
    refusal = (400, "application/json", b'{"error": {"message": "the moon is full"}}')
    with pytest.raises(ServerError, match=r"answered 400: the moon is full"):
        ask(serve(answer=refusal))


def test_a_prompt_that_is_too_long_is_not_tried_again(serve) -> None:
    said = b'{"error": {"message": "maximum context length is 128 tokens", "code": "context_length_exceeded"}}'
    state = serve(answer=(400, "application/json", said))
    with pytest.raises(ServerError, match="maximum context length"):
        ask(state)
    assert len(state.bodies) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, "text/html", b"<html><title>Welcome to\nnginx!</title></html>"), "HTML page titled 'Welcome to nginx!'"),
        ((200, "application/json", b""), "empty answer"),
        ((200, "text/event-stream", b""), "sent an empty answer in the place of a stream"),
        ((200, "text/event-stream", b"<html><title>Log in</title>"), "HTML page titled 'Log in'"),
        ((200, "text/event-stream", b'{"error": "no route"}'), "answered with no route"),
        ((200, "text/event-stream", b": ping\n\n"), "broke off"),
        ((200, "application/json", b'{"hello": 1}'), "no chat completion"),
        ((200, "application/json", b"[]"), "no chat completion"),
        ((200, "application/json", b'{"error": {"message": "no GPU"}}'), "error: no GPU"),
        ((200, "text/plain", b"hello there"), "hello there"),
        ((200, "text/event-stream", b"data: {oops\n\n"), "not JSON"),
        ((200, "text/event-stream", b'event: error\ndata: "worker died"\n\n'), "worker died"),
        ((200, "text/event-stream", b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'), "broke off"),
        ((401, "application/json", b'{"error": {"message": "no key"}}'), "401: no key .*--api-key-env"),
        ((403, "text/plain", b"forbidden"), "403: forbidden"),
        ((404, "application/json", b'{"detail": "Not Found"}'), "404: Not Found .*base URL"),
        ((404, "text/html", b"<h1>Not Found</h1>"), "404: an HTML page"),
        ((429, "application/json", b'{"error": "slow down"}'), "429: slow down .*rate"),
        ((502, "text/html", b"<title>502 Bad Gateway</title>"), "502: an HTML page titled '502 Bad Gateway'"),
        ((503, "application/json", b'{"error": {"message": "Loading model"}}'), "503: Loading model .*loaded"),
        ((500, "text/plain", b""), "500: an empty body"),
        ((302, "text/plain", b""), "redirects"),
        ((204, "text/plain", b""), "204"),
    ],
)
def test_every_other_answer_is_a_clear_error(serve, answer: tuple, said: str) -> None:
    with pytest.raises(ServerError, match=said):
        ask(serve(answer=answer))


def test_an_error_event_in_the_stream_is_an_error(serve) -> None:
    with pytest.raises(ServerError, match="engine died"):
        ask(serve(error_event_at_request=1))


@pytest.mark.parametrize("after_first_chunk", [False, True])
def test_a_hang_ends_at_the_deadline(serve, after_first_chunk: bool) -> None:
    state = serve(hangs_at_request=1, hangs_after_first_chunk=after_first_chunk)
    with pytest.raises(ServerError, match=r"no complete answer .* within 0\.3 s"):
        ask(state, timeout_s=0.3)


def test_a_server_that_only_sends_keep_alives_ends_at_the_deadline(serve) -> None:
    # Each single read is short: only a deadline over the whole request can end this.
    with pytest.raises(ServerError, match="no complete answer"):
        ask(serve(only_keep_alives=True), timeout_s=0.3)


def test_nobody_listening_is_told_as_such() -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}", timeout_s=2)
    with pytest.raises(ServerError, match=r"connection refused\. Is the server running there"):
        client.chat("m1", MESSAGES, 8)


def test_loopback_goes_through_no_proxy(serve, monkeypatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert ask(serve()).prompt_tokens == 46


def test_the_key_is_sent_and_never_shown(serve) -> None:
    said = json.dumps({"error": {"message": "Incorrect key provided: sk-12345"}}).encode()
    state = serve(answer=(401, "application/json", said))
    with pytest.raises(ServerError) as refusal:
        ask(state, api_key="sk-12345")
    assert state.headers[0]["Authorization"] == "Bearer sk-12345"
    assert "sk-12345" not in str(refusal.value) and "***" in str(refusal.value)


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Client("http://127.0.0.1:1", api_key=key)
    assert not key or key not in str(refusal.value)


def test_a_password_in_the_base_url_is_sent_as_basic_auth(serve) -> None:
    state = serve()
    client = Client(state.url.replace("http://", "http://me:secret@"), timeout_s=10)
    client.chat("m1", MESSAGES, 8)
    client.close()
    assert state.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "b"}, "b"),
        ({"detail": "c"}, "c"),
        ({"object": "error", "message": "d"}, "d"),
        ({"choices": []}, None),
        ({"choices": [], "error": None}, None),
        ([], None),
        ("x", None),
        ({"error": {"type": "t"}}, "t"),
    ],
)
def test_error_objects_of_every_usual_shape_are_understood(payload: object, said: str | None) -> None:
    assert error_text(payload) == said


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("told", [float("nan"), float("inf"), float("-inf"), 1.5, -1, "46", 2**53 + 1])
def test_a_count_that_is_no_number_of_tokens_is_none_with_a_reason(serve, streams: bool, told: object) -> None:
    answer = ask(serve(streams=streams, usage_told={"prompt_tokens": told, "completion_tokens": told}))
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (None, None, 0)
    for name in ("prompt_tokens", "completion_tokens"):
        assert answer.why[name] == f"usage holds a {name} that is no number of tokens"


def test_a_compressed_answer_is_decoded_though_none_was_asked_for(serve) -> None:
    state = serve(streams=False, content_encoding="gzip", encode=gzip.compress)
    assert ask(state).prompt_tokens == 46
    assert state.headers[0]["Accept-Encoding"] == "identity"


def test_an_encoding_that_cannot_be_undone_is_named(serve) -> None:
    with pytest.raises(ServerError, match="Content-Encoding rot13, which cannot be read here"):
        ask(serve(streams=False, content_encoding="rot13"))


def test_an_answer_that_is_not_in_the_encoding_it_names_is_an_error(serve) -> None:
    with pytest.raises(ServerError, match=r"the connection to .* broke: .*gzip"):
        ask(serve(streams=False, content_encoding="gzip"))


def test_an_endless_metrics_page_is_given_up(serve) -> None:
    client = Client(serve(endless_metrics=True).url, timeout_s=10.0)
    with pytest.raises(ServerError, match="the answer is longer than 4 MiB"):
        client.metrics_page()
    client.close()
