"""What a client can see of a double, and the truth beneath it: small chats, counted in tokens."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests

from labbook import metrics
from labbook.sse import EventReader
from labs.kit.doubles import Double

FLAGS = {
    "vllm": ["--enable-prompt-tokens-details"],
    "sglang": ["--enable-metrics", "--enable-cache-report"],
    "llama-server": ["--metrics"],
    "mlx-lm": [],
}
"""Each server, switched on to tell what it can."""

# Two conversations that differ from their first word on, several pages of 16 tokens each.
A = "The lighthouse keeper writes one page a day, and every page begins where the page before it ended."
B = "When a ship asks about the weather, the keeper looks for the page that begins as the question begins."
PATIENCE_S = 30


@dataclass(frozen=True)
class Heard:
    """One answer. `cached_tokens` and `usage` are what it says of itself, None where it says nothing."""

    status: int
    raw: bytes
    text: str = ""
    fields: frozenset[str] = frozenset()
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    payloads: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cached_tokens(self) -> int | None:
        details = (self.usage or {}).get("prompt_tokens_details") or {}
        return details.get("cached_tokens")

    @property
    def prompt_tokens(self) -> int | None:
        return (self.usage or {}).get("prompt_tokens")


def body_of(system: str, question: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return {"model": "tiny", "messages": messages, "max_tokens": 4, "temperature": 0, **more}


def chat(server: Double, system: str, question: str = "Why?", *, stream: bool = True, **more: Any) -> Heard:
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    response = requests.post(
        f"{server.base_url}/chat/completions", json=body_of(system, question, **options | more), timeout=PATIENCE_S
    )
    if response.status_code != 200:
        return Heard(response.status_code, response.content)
    return _streamed(response.content) if stream else _whole(response.content)


def get(server: Double, path: str) -> requests.Response:
    return requests.get(server.base_url.removesuffix("/v1") + path, timeout=PATIENCE_S)


def post(server: Double, path: str, body: Any) -> requests.Response:
    return requests.post(server.base_url.removesuffix("/v1") + path, json=body, timeout=PATIENCE_S)


def counted(server: Double) -> tuple[float | None, float | None]:
    """Queries and hits of /metrics, as labbook reads them, in tokens."""
    response = get(server, "/metrics")
    if response.status_code != 200:
        return None, None
    reading = metrics.read(response.text, model="tiny")
    return reading.queries, reading.hits


def network_chunks(server: Double, body: dict[str, Any]) -> list[bytes]:
    """The chunks of an answer as they lie on the wire (HTTP/1.1, Transfer-Encoding: chunked)."""
    address = urlsplit(server.base_url)
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode() + data)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    rest, chunks = received.split(b"\r\n\r\n", 1)[1], []
    while (size := int(rest.split(b"\r\n", 1)[0], 16)) > 0:
        start = rest.index(b"\r\n") + 2
        chunks.append(rest[start : start + size])
        rest = rest[start + size + 2 :]
    return chunks


def _streamed(raw: bytes) -> Heard:
    reader = EventReader()
    events = [event.data for event in [*reader.feed(raw), *reader.finish()]]
    payloads = [json.loads(data) for data in events if data != "[DONE]"]
    assert events[-1] == "[DONE]"
    choices = [choice for payload in payloads for choice in payload["choices"]]
    texts = [(name, text) for choice in choices for name, text in choice["delta"].items() if text and name != "role"]
    return Heard(
        200,
        raw,
        text="".join(text for _, text in texts),
        fields=frozenset(name for name, _ in texts),
        finish_reason=choices[-1]["finish_reason"],
        usage=next((payload["usage"] for payload in reversed(payloads) if payload.get("usage")), None),
        payloads=payloads,
    )


def _whole(raw: bytes) -> Heard:
    payload = json.loads(raw)
    choice = payload["choices"][0]
    said = {name: text for name, text in choice["message"].items() if text and name != "role"}
    return Heard(
        200, raw, "".join(said.values()), frozenset(said), choice["finish_reason"], payload.get("usage"), [payload]
    )
