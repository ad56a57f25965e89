"""A request's body as a JSON object, or a clear error. Nothing of it is trusted yet."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from minivllm.server.errors import ApiError, ClientGoneError, EngineGoneError

MAX_BODY_BYTES = 16 * 1024**2
MAX_DROPPED_BYTES = 4 * MAX_BODY_BYTES


async def read_object(request: Request, *, may_be_empty: bool = False) -> dict[str, Any]:
    """The JSON object in the body. Raises `ApiError` 400, 413 or 415, and `ClientGoneError` when it never comes.

    Only `application/json` is read: a form that some web page posts to a loopback port never is.
    """
    raw = await _read_until_stopped(request)
    if not raw and may_be_empty:
        return {}
    content_type = request.headers.get("content-type", "")
    if content_type.split(";")[0].strip().lower() != "application/json":
        message = f"the body's content type is {content_type or 'missing'}: send application/json"
        raise ApiError(415, message, code="unsupported_media_type")
    return parse_object(raw)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Only UTF-8, as RFC 8259 has it: Python would guess UTF-16 too, and let half characters through."""
    try:
        text = raw.decode("utf-8-sig")
        body = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
        if "\\u" in text:
            _refuse_lone_surrogates(body)
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply", code="invalid_json") from None
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8 (byte {error.start}: {error.reason}): send JSON in UTF-8"
        raise ApiError(400, message, code="invalid_json") from None
    except ValueError as error:
        raise ApiError(400, f"the body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(400, f"the body is a JSON {type(body).__name__}: send an object", code="invalid_json")
    return body


async def _read_until_stopped(request: Request) -> bytes:
    """A server that stops does not wait for a body that comes slowly, or never."""
    reading = asyncio.create_task(_read_bytes(request))
    stopping = asyncio.create_task(request.app.state.stopping.wait())
    try:
        await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            return reading.result()
    except ClientDisconnect:
        raise ClientGoneError from None
    finally:
        reading.cancel()
        stopping.cancel()
    raise EngineGoneError("the server is shutting down", "shutting_down")


async def _read_bytes(request: Request) -> bytes:
    """A body that is too large is read on and dropped: its sender looks for an answer only once all is sent."""
    chunks: list[bytes] = []
    num_bytes = 0
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes > MAX_DROPPED_BYTES:
            break
        if num_bytes <= MAX_BODY_BYTES:
            chunks.append(chunk)
    if num_bytes > MAX_BODY_BYTES:
        message = f"the body is larger than {MAX_BODY_BYTES} bytes: send a shorter prompt"
        raise ApiError(413, message, code="body_too_large", headers={"Connection": "close"})
    return b"".join(chunks)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A field that is given twice has no one meaning: parsers differ in which they take."""
    body = dict(pairs)
    if len(body) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice!r:.80} is given more than once: give it once")
    return body


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_lone_surrogates(body: Any) -> None:
    """JSON can spell half a character, which no tokenizer can encode."""
    try:
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string holds half of a UTF-16 surrogate pair") from None
