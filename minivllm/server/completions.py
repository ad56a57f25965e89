"""`POST /v1/chat/completions` and `/v1/completions`: body to request, request to engine, outputs to body."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from minivllm.server.answers import Answer, ChatAnswer, TextAnswer
from minivllm.server.body import read_object
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError
from minivllm.server.fields import parse
from minivllm.server.metrics import Histogram
from minivllm.server.openai import ChatCompletion, Completion, Sampling
from minivllm.server.outputs import Outputs
from minivllm.server.prepare import Prepared, Preparer
from minivllm.server.streaming import stream


def completion_routes(engine: EngineThread, model_name: str, preparer: Preparer, ttft: Histogram) -> APIRouter:
    router = APIRouter()

    async def respond(request: Request, asked: Sampling, prepared: Prepared, answer: Answer) -> Response:
        outputs = Outputs(engine, prepared, request, ttft.observe)
        if asked.stream:
            return await stream(answer, outputs, include_usage=asked.include_usage)
        async with outputs:
            final = await outputs.last()
        return JSONResponse(answer.whole(final), headers={"X-Request-Id": prepared.request_id})

    @router.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await read_object(request)
        tokenizer = preparer.facts.tokenizer
        asked = parse(ChatCompletion, body)
        _check_stream_options(asked)
        prepared = await run_in_threadpool(preparer.chat, asked)
        answer = ChatAnswer(prepared.request_id, model_name, tokenizer.token_text)
        return await respond(request, asked, prepared, answer)

    @router.post("/v1/completions")
    async def complete(request: Request) -> Response:
        body = await read_object(request)
        tokenizer = preparer.facts.tokenizer
        asked = parse(Completion, body)
        _check_stream_options(asked)
        prepared = await run_in_threadpool(preparer.completion, asked)
        echo_text = await run_in_threadpool(preparer.echo_text, asked) if asked.echo else None
        answer = TextAnswer(prepared.request_id, model_name, tokenizer.token_text, echo_text)
        return await respond(request, asked, prepared, answer)

    return router


def _check_stream_options(asked: Sampling) -> None:
    if asked.stream_options is not None and not asked.stream:
        raise ApiError(400, "stream_options needs stream=true", code="invalid_value", param="stream_options")
