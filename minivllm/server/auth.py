"""A bearer key, compared in constant time. `/health` stays open: whoever restarts a server has no key."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from minivllm.config import ConfigError
from minivllm.server.errors import ApiError

OPEN_PATHS = frozenset({"/health"})


def check_api_key(api_key: str) -> None:
    if not (api_key.isascii() and api_key.isprintable()):
        raise ConfigError("the API key has characters that no HTTP header carries: use ASCII letters, digits and signs")


class BearerAuth:
    """ASGI middleware. Starlette's base class for such would hide a client's disconnect."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._api_key = api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_allowed(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        error = ApiError(
            401,
            "this server needs its API key: send it as 'Authorization: Bearer KEY'",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await error.response()(scope, receive, send)

    def _is_allowed(self, headers: Headers) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(key.strip().encode("utf-8", "replace"), self._api_key)
