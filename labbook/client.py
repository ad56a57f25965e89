"""Chat requests to an OpenAI-compatible server, timed: streamed or not."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from labbook.answer import Answer, error_text, finish_reason, first_token_field, token_counts
from labbook.bodies import FULL, Shape, chat_body, named_field, smaller_shapes
from labbook.connection import Connection, RefusedError, TimedChunks, joined, parsed_json, read_json, what_it_said
from labbook.errors import ServerError
from labbook.prompts import Message, body_bytes, sha256, without_system
from labbook.sse import Event, EventReader
from labbook.urls import ServerUrls, parse

_SIDE_REQUEST_S = 10.0
_MAX_METRICS_BYTES = 4 * 2**20
_HEAD_BYTES = 4096
_HOPELESS = re.compile(r"context.?(length|size|window)|too (long|large)|does not exist", re.IGNORECASE)
_STREAM_STARTS = (b"data:", b"event:", b":")


class Client:
    """One server. `shape` is the set of optional request fields that it was found to take.

    `on_first_token` is called, in the thread that waits for the answer, when the first token of a stream has arrived.
    """

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout_s: float = 120.0) -> None:
        self.urls: ServerUrls = parse(base_url)
        self.timeout_s = timeout_s
        self.shape: Shape = FULL
        self.on_first_token: Callable[[], None] | None = None
        self._connection = Connection(self.urls, api_key)

    @property
    def dropped_fields(self) -> tuple[str, ...]:
        """Optional request fields that the server refused."""
        return tuple(sorted(FULL - self.shape))

    def close(self) -> None:
        self._connection.close()

    def chat(self, model: str, messages: list[Message], max_tokens: int) -> Answer:
        """Send a chat request and wait for its end. Fields that the server refuses are left out from then on."""
        waiting, tried, first_refusal = [self.shape], set[Shape](), None
        while waiting:
            shape = waiting.pop(0)
            tried.add(shape)
            try:
                answer = self._chat_once(chat_body(model, messages, max_tokens, shape))
            except RefusedError as refusal:
                waiting = [s for s in _next_shapes(shape, refusal, waiting, first_refusal is None) if s not in tried]
                first_refusal = first_refusal or refusal
            else:
                self.shape = shape
                return answer
        raise first_refusal or ServerError("no request was sent")

    def body_of(self, model: str, messages: list[Message], max_tokens: int) -> bytes:
        """The bytes that `chat` would send."""
        return body_bytes(chat_body(model, messages, max_tokens, self.shape))

    def model_names(self) -> list[str]:
        """The models that the server lists. Raises ServerError when it cannot be reached or lists none."""
        listed = parsed_json(self._side_request("GET", self.urls.models))
        entries = listed.get("data") if isinstance(listed, dict) else None
        names = [e["id"] for e in entries or [] if isinstance(e, dict) and isinstance(e.get("id"), str)]
        if not names:
            raise ServerError(f"{self.urls.models} lists no model: name one with --model")
        return names

    def metrics_page(self) -> str:
        """The text of /metrics. Raises ServerError when there is none."""
        timeout_s = min(self.timeout_s, _SIDE_REQUEST_S)
        text = self._connection.text("GET", self.urls.metrics, None, timeout_s, _MAX_METRICS_BYTES)
        if text.lstrip()[:1] in ("<", "{") and "_total" not in text:
            raise ServerError(f"{self.urls.metrics} answers no metrics page")
        return text

    def version(self) -> str | None:
        """What /version says, as vLLM and the mini engine have it; None where there is no such address."""
        told = self.facts(self.urls.version).get("version")
        return told if isinstance(told, str) else None

    def facts(self, url: str) -> dict[str, Any]:
        """The JSON object at an address that tells about the server; empty where there is none."""
        with contextlib.suppress(ServerError):
            told = parsed_json(self._side_request("GET", url))
            return told if isinstance(told, dict) else {}
        return {}

    def tokenize(self, model: str, messages: list[Message]) -> list[int] | None:
        """Token ids of a rendered chat, where the server has vLLM's /tokenize; else None."""
        sent = messages if "system" in self.shape else without_system(messages)
        body = body_bytes({"model": model, "messages": sent})
        with contextlib.suppress(ServerError):
            told = parsed_json(self._side_request("POST", self.urls.tokenize, body))
            tokens = told.get("tokens") if isinstance(told, dict) else None
            if tokens and isinstance(tokens, list) and all(isinstance(token, int) for token in tokens):
                return tokens
        return None

    def _side_request(self, method: str, url: str, data: bytes | None = None) -> str:
        return self._connection.text(method, url, data, min(self.timeout_s, _SIDE_REQUEST_S))

    def _chat_once(self, body: dict[str, Any]) -> Answer:
        data = body_bytes(body)
        started_s = time.perf_counter()
        with self._connection.open("POST", self.urls.chat, data, self.timeout_s) as (content_type, chunks):
            first = next(chunks, (started_s, b""))
            chunks = chain([first], chunks)
            if "event-stream" in content_type or first[1].lstrip().startswith(_STREAM_STARTS):
                heard = self._listen(chunks)
            else:
                heard = self._whole(joined(chunks))
        ended_s = heard.ended_at_s or time.perf_counter()
        return heard.answer(started_s, ended_s, sha256(data))

    def _whole(self, text: str) -> _Heard:
        payload = parsed_json(text)
        if message := error_text(payload):
            raise ServerError(f"the server answered with an error: {self._connection.safe(message)}")
        if not isinstance(payload, dict) or not isinstance(payload.get("choices"), list):
            raise ServerError("the answer is JSON but no chat completion: is this an OpenAI-compatible server?")
        heard = _Heard(streamed=False)
        heard.take(payload, None)
        return heard

    def _listen(self, chunks: Iterator[tuple[float, bytes]] | TimedChunks) -> _Heard:
        """Drain a stream, past [DONE] to its end: a left-over stream would slow the next request."""
        reader, heard, head = EventReader(), _Heard(streamed=True), b""
        at_s = 0.0
        for at_s, chunk in chunks:
            head += chunk[: _HEAD_BYTES - len(head)]
            for event in reader.feed(chunk):
                self._take_event(event, at_s, heard)
        for event in reader.finish():
            self._take_event(event, at_s, heard)
        heard.ended_at_s = at_s
        if not heard.done and heard.finish_reason is None:
            raise ServerError(self._connection.safe(_why_it_is_no_stream(head)))
        return heard

    def _take_event(self, event: Event, at_s: float, heard: _Heard) -> None:
        if event.data.strip() == "[DONE]":
            heard.done = True
            return
        try:
            chunk = read_json(event.data)
        except (ValueError, RecursionError):
            shown = self._connection.safe(event.data[:120])
            raise ServerError(f"the stream holds an event that is not JSON: {shown!r}") from None
        if message := error_text(chunk) or (event.data if event.name == "error" else None):
            raise ServerError(f"the server broke off with an error: {self._connection.safe(message)}")
        if isinstance(chunk, dict):
            is_first = heard.take(chunk, at_s)
            if is_first and self.on_first_token is not None:
                self.on_first_token()


@dataclass
class _Heard:
    """What was heard of an answer so far."""

    streamed: bool
    done: bool = False
    first_at_s: float | None = None
    ended_at_s: float | None = None
    first_field: str | None = None
    finish_reason: str | None = None
    system_fingerprint: str | None = None
    last: dict[str, Any] = field(default_factory=dict)

    def take(self, chunk: dict[str, Any], at_s: float | None) -> bool:
        """Note what this chunk says; True when it carries the first token."""
        self.last.update({name: chunk[name] for name in ("usage", "timings") if isinstance(chunk.get(name), dict)})
        self.finish_reason = finish_reason(chunk) or self.finish_reason
        if isinstance(chunk.get("system_fingerprint"), str):
            self.system_fingerprint = chunk["system_fingerprint"]
        if self.first_field is None and (found := first_token_field(chunk)):
            self.first_field, self.first_at_s = found, at_s
            return True
        return False

    def answer(self, started_s: float, ended_s: float, body_sha256: str) -> Answer:
        counts = token_counts(self.last.get("usage"), self.last.get("timings"))
        why = dict(counts.why)
        if self.first_at_s is None:
            why["ttft_s"] = "no chunk of the stream carried text" if self.streamed else "the answer was not streamed"
        return Answer(
            ttft_s=None if self.first_at_s is None else self.first_at_s - started_s,
            total_s=ended_s - started_s,
            first_field=self.first_field,
            prompt_tokens=counts.prompt_tokens,
            completion_tokens=counts.completion_tokens,
            cached_tokens=counts.cached_tokens,
            cached_source=counts.cached_source,
            timings=self.last.get("timings"),
            finish_reason=self.finish_reason,
            streamed=self.streamed,
            body_sha256=body_sha256,
            why=why,
            system_fingerprint=self.system_fingerprint,
        )


def _why_it_is_no_stream(head: bytes) -> str:
    """What came in the place of a whole stream, told from its first bytes."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "the server sent an empty answer in the place of a stream: is this the right port and base URL?"
    if not text.startswith(_STREAM_STARTS):
        return f"the server calls it a stream but answered with {what_it_said(text.decode('utf-8', 'replace'))}"
    return "the stream broke off before its end: the server closed the connection"


def _next_shapes(shape: Shape, refusal: RefusedError, waiting: list[Shape], is_first: bool) -> list[Shape]:
    """What to try after a refusal: without the field it names, else without each field in turn."""
    if _HOPELESS.search(str(refusal)):
        return []
    if named := named_field(str(refusal), shape):
        return [shape - {named}, *waiting]
    if refusal.status == 500:  # what a template that knows no system message gives in some servers
        return [shape - {"system"}] if is_first else waiting
    return [*waiting, *smaller_shapes(shape)] if is_first else waiting
