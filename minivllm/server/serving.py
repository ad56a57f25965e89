"""A running server: a bound socket, the engine thread, uvicorn, and how they start and stop together."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI

from minivllm.config import ConfigError
from minivllm.server.app import create_app
from minivllm.server.engine_facts import Health
from minivllm.server.engine_thread import EngineThread

if TYPE_CHECKING:
    from minivllm.engine import Engine

STOP_TIMEOUT_S = 10


class ServeError(Exception):
    """The server cannot start; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 asks the system for a free one."""

    host: str = "127.0.0.1"
    port: int = 8000

    def __post_init__(self) -> None:
        if not self.host.strip():  # to the system, an empty name means every interface
            raise ConfigError(f"--host {self.host!r} is empty: give 127.0.0.1, or 0.0.0.0 to listen on every interface")

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def bind(address: Address) -> tuple[socket.socket, Address]:
    """A listening socket and the address it really has. Raises `ServeError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.getaddrinfo(address.host, address.port, family, socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else "no valid name"
        raise ServeError(f"--host {address.host} cannot be resolved ({reason}): give 127.0.0.1") from error
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=2048)
    except OSError as error:
        raise ServeError(_why_not_bound(address, error)) from error
    return listener, Address(address.host, listener.getsockname()[1])


class UvicornServer(uvicorn.Server):
    """SIGTERM and SIGINT end it with status 0; uvicorn alone would raise the signal again at the end."""

    def __init__(self, app: FastAPI, on_signal: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=STOP_TIMEOUT_S)
        )
        self._on_signal = on_signal
        self._stopping: asyncio.Event = app.state.stopping

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._on_signal()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


def say_nothing_of_vanished_clients(record: logging.LogRecord) -> bool:
    """A filter for asyncio's log: it warns whenever an answer was on its way as its client went."""
    return record.getMessage() != "socket.send() raised exception."


def serve(
    build: Callable[[], Engine],
    model_name: str,
    address: Address,
    api_key: str | None = None,
    *,
    expose_slot_text: bool = False,
) -> int:
    """Serve until a signal; must run in the main thread. Returns the exit status: 1 when loading failed.

    The port opens at once and `/health` says "loading"; the line on stdout comes when requests can be served.
    Raises `ServeError` when the address cannot be had, `ConfigError` when a setting does not suit the model.
    """

    def announce() -> None:
        print(f"minivllm serving {model_name} at {bound.url}", flush=True)

    def end_when_never_ready(_: Health) -> None:
        if engine.facts is None:
            uvicorn_server.should_exit = True

    engine = EngineThread(build, on_ready=announce, on_death=end_when_never_ready)
    app = create_app(engine, model_name, api_key, expose_slot_text=expose_slot_text)
    uvicorn_server = UvicornServer(app, on_signal=engine.request_stop)
    listener, bound = bind(address)
    _warn_when_exposed(bound, api_key)
    print(
        f"minivllm loading {model_name}; {bound.url}/health answers 200 when it is ready",
        file=sys.stderr,
        flush=True,
    )
    logging.getLogger("asyncio").addFilter(say_nothing_of_vanished_clients)
    engine.start()
    uvicorn_server.run(sockets=[listener])
    return _end(engine)


def _end(engine: EngineThread) -> int:
    engine.request_stop()
    is_loading = engine.health.state == "loading"  # a download or a load cannot be interrupted, and loses nothing
    if not engine.join(1 if is_loading else STOP_TIMEOUT_S):
        print("minivllm: leaving without waiting for the engine thread", file=sys.stderr, flush=True)
        return 0
    if engine.config_error is not None:
        raise engine.config_error
    if engine.facts is None and engine.health.state == "dead":
        print(f"minivllm: the model cannot be served: {engine.health.reason}", file=sys.stderr, flush=True)
        return 1
    print("minivllm: stopped", file=sys.stderr, flush=True)
    return 0


def _why_not_bound(address: Address, error: OSError) -> str:
    asked = f"port {address.port} on {address.host}"
    if error.errno == errno.EADDRINUSE:
        return f"{asked} is busy: stop the program that uses it, or give another --port (0 picks a free one)"
    if error.errno == errno.EACCES:
        return f"{asked} needs rights this user lacks: give a --port of 1024 or above"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {address.host} is no address of this machine ({error.strerror}): give 127.0.0.1"
    return f"{asked} cannot be used: {error}"


def _warn_when_exposed(address: Address, api_key: str | None) -> None:
    if address.is_loopback:
        return
    guard = "requests need the API key" if api_key is not None else "without a key: consider --api-key-env"
    print(
        f"minivllm: warning: {address.host} is reachable from other machines, {guard}",
        file=sys.stderr,
        flush=True,
    )
