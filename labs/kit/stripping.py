"""A proxy that leaves a measurement nothing but the clock: no usage, no timings, no metrics page.

Everything else passes unchanged and at once, streams line by line. Loopback only, both ways.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

HIDDEN_PATHS = ("/metrics", "/tokenize", "/slots", "/props")
STRIPPED_FIELDS = ("usage", "timings")
_UPSTREAM_TIMEOUT_S = 600.0


@contextmanager
def stripping_proxy(base_url: str) -> Iterator[str]:
    """`with stripping_proxy(server.base_url) as url:` gives the same server without its counts."""
    parts = urlsplit(base_url)
    address = {"host": parts.hostname or "127.0.0.1", "port": parts.port or 80}
    server = _Proxy(("127.0.0.1", 0), type("BoundHandler", (_Handler,), address))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{parts.path}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def stripped(text: bytes) -> bytes | None:
    """A JSON object without its counts; None for an event that held nothing else; other bytes unchanged."""
    try:
        payload: Any = json.loads(text)
    except ValueError:
        return text
    if not isinstance(payload, dict) or not payload.keys() & set(STRIPPED_FIELDS):
        return text
    kept = {name: value for name, value in payload.items() if name not in STRIPPED_FIELDS}
    return None if kept.get("choices") == [] else json.dumps(kept).encode()


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        return  # a client that leaves early is no event


class _Handler(BaseHTTPRequestHandler):
    host: str
    port: int

    def log_message(self, *args: object) -> None:
        return

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _pass_on(self, body: bytes | None) -> None:
        if urlsplit(self.path).path in HIDDEN_PATHS:
            self._answer(404, "application/json", b'{"error": {"message": "not found"}}')
            return
        upstream = http.client.HTTPConnection(self.host, self.port, timeout=_UPSTREAM_TIMEOUT_S)
        with contextlib.closing(upstream):
            headers = {name: self.headers[name] for name in ("Content-Type", "Authorization") if name in self.headers}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            content_type = answer.getheader("Content-Type", "")
            if "event-stream" in content_type:
                self._stream(answer, content_type)
            else:
                whole = answer.read()
                self._answer(answer.status, content_type, stripped(whole) or b"{}")

    def _answer(self, status: int, content_type: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer: http.client.HTTPResponse, content_type: str) -> None:
        """HTTP/1.0: the end of the connection is the end of the stream."""
        self.send_response(answer.status)
        self.send_header("Content-Type", content_type)
        self.end_headers()
        while line := answer.readline():
            name, colon, value = line.partition(b":")
            if name == b"data" and colon:
                kept = stripped(value.strip())
                if kept is None:
                    continue
                line = b"data: " + kept + b"\n"
            self.wfile.write(line)
            self.wfile.flush()
