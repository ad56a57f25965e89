"""`POST /tokenize` and `POST /detokenize`, in vLLM's shapes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from minivllm.server.body import read_object
from minivllm.server.fields import parse
from minivllm.server.openai import Detokenize, TokenizeChat, TokenizeText
from minivllm.server.prepare import Preparer


def token_routes(preparer: Preparer) -> APIRouter:
    router = APIRouter()

    def tokenize(body: dict[str, Any]) -> dict[str, Any]:
        facts = preparer.facts
        asked = parse(TokenizeChat, body) if "messages" in body else parse(TokenizeText, body)
        preparer.check_model(asked.model)
        if isinstance(asked, TokenizeChat):
            token_ids = preparer.encode_chat(asked, add_generation_prompt=asked.add_generation_prompt)
        else:
            token_ids = preparer.encode(asked.prompt, asked.add_special_tokens)
        token_strs = (
            [facts.tokenizer.token_text(token_id) for token_id in token_ids] if asked.return_token_strs else None
        )
        return {
            "count": len(token_ids),
            "max_model_len": facts.max_model_len,
            "tokens": token_ids,
            "token_strs": token_strs,
        }

    def detokenize(body: dict[str, Any]) -> dict[str, Any]:
        asked = parse(Detokenize, body)
        preparer.check_model(asked.model)
        return {"prompt": preparer.detokenize(asked.tokens)}

    @router.post("/tokenize")
    async def tokenize_route(request: Request) -> dict[str, Any]:
        return await run_in_threadpool(tokenize, await read_object(request))

    @router.post("/detokenize")
    async def detokenize_route(request: Request) -> dict[str, Any]:
        return await run_in_threadpool(detokenize, await read_object(request))

    return router
