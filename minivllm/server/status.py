"""`GET /health`, `/version`, `/v1/models` and `POST /reset_prefix_cache`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from minivllm.request import CacheBusyError
from minivllm.server.body import read_object
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError
from minivllm.server.fields import parse
from minivllm.server.openai import ResetPrefixCache
from minivllm.server.prepare import Preparer
from minivllm.server.version import version


def status_routes(engine: EngineThread, model_name: str, preparer: Preparer) -> APIRouter:
    router = APIRouter()
    started_at = int(time.time())

    @router.get("/health")
    async def health() -> Response:
        """200 once the weights are in memory and both kinds of pass have run; else 503 with the reason."""
        if engine.health.state == "ready":
            return JSONResponse({"status": "ok"})
        error = engine.gone()
        return JSONResponse({"status": engine.health.state, **error.body}, error.status)

    @router.get("/version")
    async def program_version() -> dict[str, str]:
        return {"version": version()}

    @router.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [describe_model()]}

    @router.get("/v1/models/{name:path}")
    async def model(name: str) -> dict[str, Any]:
        preparer.check_model(name)
        return describe_model()

    @router.post("/reset_prefix_cache")
    async def reset_prefix_cache(request: Request) -> dict[str, int]:
        """Drops every cached page, or those of one `cache_salt` (a field of the body, or in the query)."""
        asked = parse(ResetPrefixCache, {**request.query_params, **await read_object(request, may_be_empty=True)})
        try:
            dropped = engine.call(lambda running: running.reset_prefix_cache(asked.cache_salt))
            return {"pages_dropped": await asyncio.wrap_future(dropped)}
        except CacheBusyError as error:
            raise ApiError(409, str(error), code="cache_busy") from None

    def describe_model() -> dict[str, Any]:
        return {
            "id": model_name,
            "object": "model",
            "created": started_at,
            "owned_by": "minivllm",
            "max_model_len": preparer.facts.max_model_len,
        }

    return router
