"""Server-sent events: one `data:` line and an empty line per chunk, then `data: [DONE]`.

Nothing is sent before the request's first output. Until then an error is an ordinary answer; after that it is a
last event `{"error": ...}` without `[DONE]`, so that nobody takes the text for complete.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi.responses import StreamingResponse

from minivllm.server.answers import Answer
from minivllm.server.errors import ClientGoneError, as_api_error
from minivllm.server.outputs import Outputs
from minivllm.server.responses import timings, usage

DONE = b"data: [DONE]\n\n"


async def stream(answer: Answer, outputs: Outputs, *, include_usage: bool) -> StreamingResponse:
    """Waits for the first chunk; raises what `Outputs` raises before it."""
    chunks = _chunks(answer, outputs, include_usage)
    first = await anext(chunks)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "X-Request-Id": answer.request_id}
    return StreamingResponse(_events(first, chunks), media_type="text/event-stream", headers=headers)


async def _events(first: dict[str, Any], chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    async with aclosing(chunks):  # type: ignore[type-var]
        try:
            yield _event(first)
            async for chunk in chunks:
                yield _event(chunk)
        except ClientGoneError:
            return
        except Exception as error:
            yield _event(as_api_error(error).body)
            return
        yield DONE


async def _chunks(answer: Answer, outputs: Outputs, include_usage: bool) -> AsyncIterator[dict[str, Any]]:
    # With usage asked for, OpenAI gives every chunk the field: null until the last one, which has no choices.
    pending_usage: dict[str, Any] = {"usage": None} if include_usage else {}
    is_opened = False
    async with outputs:
        async for output in outputs:
            if not is_opened and (opening := answer.opening(output)) is not None:
                yield answer.chunk(opening) | pending_usage
            is_opened = True
            if output.new_text or (output.logprobs is not None and output.new_token_ids):
                yield answer.chunk(answer.delta(output)) | pending_usage
    final = answer.chunk(answer.ending(output))
    if not include_usage:
        yield final | {"timings": timings(output.metrics)}
        return
    yield final | pending_usage
    yield answer.chunk() | {"usage": usage(output.metrics), "timings": timings(output.metrics)}


def _event(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
