"""The tap: listens on one address, and lets everything through to another."""

from __future__ import annotations

import itertools
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from labbook.errors import LabbookError, UsageError
from labbook.tap.exchange import Exchange
from labbook.tap.private_file import PrivateFile
from labbook.tap.relay import Relay
from labbook.tap.reporter import Reporter
from labbook.tap.tokens import TokenCounter
from labbook.tap.upstream import cut, upstream_at

DEFAULT_TIMEOUT_S = 600.0
_STOP_WITHIN_S = 3.0


class Tap:
    """A proxy before `upstream`, as a context manager; `url` is where the application is to send its requests.

    `out` is the private file (None records nothing). `tell` gets the entry of each request, without bodies; `warn` a
    sentence when something was not recorded. `timeout_s` is the longest silence of the upstream. With
    `asks_for_tokens`, the upstream's /tokenize is asked about prompts, after their answers have passed.

    Raises UsageError, or LabbookError when the address or the file cannot be had.
    """

    def __init__(
        self,
        upstream: str,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        out: str | os.PathLike[str] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        asks_for_tokens: bool = True,
        tell: Callable[[dict[str, Any]], None] = lambda entry: None,
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.upstream = upstream_at(upstream, timeout_s)
        if self.upstream.urls.is_loopback and port == self.upstream.port:
            raise UsageError(f"port {port} is the upstream's own: choose another for the tap")
        self._server = _listening(host, port, type("BoundRelay", (Relay,), {"tap": self, "timeout": timeout_s}))
        try:
            self._file = None if out is None else PrivateFile(Path(out))
        except LabbookError:
            self._server.server_close()
            raise
        self.is_stopping = False
        self._numbers = itertools.count(1)
        self._open = 0
        self._sockets: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._counter = TokenCounter(self.upstream) if asks_for_tokens else None
        self._reporter = Reporter(self._file, self._counter, tell, warn)
        serve = {"poll_interval": 0.05}
        threading.Thread(target=self._server.serve_forever, kwargs=serve, name="tap", daemon=True).start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, cut what is under way, and report it."""
        if self.is_stopping:
            return
        self.is_stopping = True
        if self._counter is not None:
            self._counter.stop()
        self._server.shutdown()
        self._server.server_close()
        deadline_s = time.monotonic() + _STOP_WITHIN_S
        with self._changed:
            for upstream_socket in self._sockets:
                cut(upstream_socket)
            while self._open and (remaining_s := deadline_s - time.monotonic()) > 0:
                self._changed.wait(remaining_s)
        self._reporter.finish(_STOP_WITHIN_S)
        if self._file is not None:
            self._file.close()

    # What follows is for the relays, each in its own thread.

    def begin(self, method: str, target: str, headers: Iterable[tuple[str, str]]) -> Exchange:
        with self._changed:
            self._open += 1
            return Exchange(next(self._numbers), method, target, list(headers))

    def arrived(self, exchange: Exchange) -> None:
        """The request is complete: from now on it is an earlier one for those that follow."""
        self._reporter.arrived(exchange)

    def end(self, exchange: Exchange) -> None:
        exchange.ended_s = time.perf_counter()
        self._reporter.ended(exchange)
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    @contextmanager
    def cuttable(self, upstream_socket: socket.socket) -> Iterator[socket.socket]:
        """While the block runs, closing the tap cuts this connection."""
        with self._changed:
            self._sockets.add(upstream_socket)
        try:
            if self.is_stopping:
                cut(upstream_socket)
            yield upstream_socket
        finally:
            with self._changed:
                self._sockets.discard(upstream_socket)


class _Listener(socketserver.ThreadingMixIn, socketserver.TCPServer):
    # Not http.server's: that one asks the name service for its own name before it listens.
    allow_reuse_address = os.name != "nt"
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        return  # a client that resets an idle connection


def _listening(host: str, port: int, relay: type[Relay]) -> _Listener:
    if not 0 <= port <= 65_535:
        raise UsageError(f"port is {port}: a number from 0 (any free one) to 65535 is needed")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = type("_Listener", (_Listener,), {"address_family": family})
    try:
        return listener((host, port), relay)
    except OSError as error:
        raise LabbookError(f"cannot listen on {host} port {port}: {error.strerror or error}; choose another") from None
