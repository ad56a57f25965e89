"""What a double answers, before it becomes bytes on a connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Response:
    """A whole answer. `headers` come on top of Content-Type and Content-Length."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EventStream:
    """Server-sent events as text, each with the empty line that ends it."""

    events: Iterator[str]
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


class Hang:
    """No answer at all, for as long as the client waits."""


def compact(value: Any) -> str:
    """JSON as most servers write it: no blanks, UTF-8 as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_response(value: Any, status: int = 200) -> Response:
    return Response(status, compact(value).encode())


def text_response(text: str, status: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    return Response(status, text.encode(), content_type)


def event(text: str) -> str:
    return f"data: {text}\n\n"
