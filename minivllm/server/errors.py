"""Every error leaves as OpenAI's JSON, `{"error": {"message", "type", "param", "code"}}` (SV-14)."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from minivllm.config import ConfigError, SamplingParams
from minivllm.request import RequestError

logger = logging.getLogger("minivllm.server")

CLIENT_CLOSED_REQUEST = 499
MAX_MESSAGE_CHARS = 400
ELLIPSIS = " ... "


class ApiError(Exception):
    """An error as answer: `message` for a person, `code` for a program, `param` the field at fault.

    What it repeats of a request is cut: a prompt of megabytes never comes back as an error.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(clipped(message))
        self.status = status
        self.code = code
        self.param = None if param is None else clipped(param)
        self.headers = headers

    @property
    def body(self) -> dict[str, Any]:
        error = {
            "message": str(self),
            "type": error_type(self.status),
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, self.headers)


class EngineGoneError(ApiError):
    """The engine thread is loading, dead or stopped: nothing can be computed (now)."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(503, message, code=code)


class RequestFailedError(ApiError):
    """The engine accepted the request and failed while computing it."""

    def __init__(self, message: str) -> None:
        super().__init__(500, message, code="request_failed")


class ClientGoneError(Exception):
    """The client hung up; there is nobody to answer."""


def invalid_value(message: str, param: str) -> ApiError:
    return ApiError(400, message, code="invalid_value", param=param)


def clipped(text: str) -> str:
    """`text`, its middle left out when it is longer than an error needs."""
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    half = (MAX_MESSAGE_CHARS - len(ELLIPSIS)) // 2
    return text[:half] + ELLIPSIS + text[-half:]


def error_type(status: int) -> str:
    if status < 500:
        return "invalid_request_error"
    return "service_unavailable_error" if status == 503 else "server_error"


def from_request_error(error: RequestError) -> ApiError:
    return ApiError(400, str(error), code=error.code, param=error.param)


def from_config_error(error: ConfigError) -> ApiError:
    """`SamplingParams` starts each message with the field it is about."""
    first_word = str(error).split("=")[0].split(" ")[0]
    param = first_word if first_word in SamplingParams.__dataclass_fields__ else None
    return ApiError(400, str(error), code="invalid_value", param=param)


def as_api_error(error: Exception) -> ApiError:
    """What a client is told about `error`. Anything unforeseen is a 500 whose details stay in the log."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestError):
        return from_request_error(error)
    if isinstance(error, ConfigError):
        return from_config_error(error)
    if isinstance(error, HTTPException):
        headers = dict(error.headers) if error.headers else None
        return ApiError(error.status_code, str(error.detail), headers=headers)
    logger.error("unforeseen error", exc_info=error)
    return ApiError(500, f"the server failed: {type(error).__name__}; its log says more", code="internal_error")


def install(app: FastAPI) -> None:
    """Make `app` answer every error in this shape."""

    async def answer_known(_: Request, error: Exception) -> JSONResponse:
        return as_api_error(error).response()

    async def answer_nobody(_: Request, __: Exception) -> Response:
        return Response(status_code=CLIENT_CLOSED_REQUEST)

    async def answer_route(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        asked = f"{request.method} {request.url.path}"
        if error.status_code == 404:
            routes = "/v1/chat/completions, /v1/completions, /v1/models, /tokenize, /slots, /metrics, /health"
            return ApiError(404, f"there is no route {asked}; there are {routes}", code="route_not_found").response()
        if error.status_code == 405:
            allowed = (error.headers or {}).get("Allow", "another method")
            message = f"{asked} is not allowed: use {allowed}"
            return ApiError(405, message, code="method_not_allowed", headers=dict(error.headers or {})).response()
        return as_api_error(error).response()

    for kind in (ApiError, RequestError, ConfigError, Exception):
        app.add_exception_handler(kind, answer_known)
    app.add_exception_handler(ClientGoneError, answer_nobody)
    app.add_exception_handler(HTTPException, answer_route)
