"""The application: routes, errors and the key, around an engine thread that its caller starts and stops."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI

from minivllm.server import errors
from minivllm.server.auth import BearerAuth, check_api_key
from minivllm.server.completions import completion_routes
from minivllm.server.engine_thread import EngineThread
from minivllm.server.metrics import Histogram, metrics_routes
from minivllm.server.prepare import Preparer
from minivllm.server.slots import slot_routes
from minivllm.server.status import status_routes
from minivllm.server.tokens import token_routes


def create_app(
    engine: EngineThread, model_name: str, api_key: str | None = None, *, expose_slot_text: bool = False
) -> FastAPI:
    """`model_name` is what clients call the model; with `api_key`, every route but `/health` asks for it.
    `expose_slot_text` lets `/slots` show what conversations say.

    Whoever stops the server sets `app.state.stopping`: bodies that are still being sent are not waited for.
    Raises `ConfigError` for a key that no client can send.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.stopping = asyncio.Event()
    errors.install(app)
    if api_key is not None:
        check_api_key(api_key)
        app.add_middleware(BearerAuth, api_key=api_key)
    preparer, ttft = Preparer(engine, model_name), Histogram()
    app.include_router(completion_routes(engine, model_name, preparer, ttft))
    app.include_router(token_routes(preparer))
    app.include_router(status_routes(engine, model_name, preparer))
    app.include_router(slot_routes(engine, model_name, preparer, expose_slot_text))
    app.include_router(metrics_routes(engine, model_name, ttft))
    return app
