"""HTTP around a double, on a loopback port: what it answers becomes bytes, whole or as the faults cut them up."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.response import EventStream, Hang, Response
from labs.kit.doubles.server_double import Double

HOST = "127.0.0.1"
KEEP_ALIVE = ": keep-alive\n\n"


class Handler(BaseHTTPRequestHandler):
    """`double` is set in a subclass of its own for each server."""

    double: Double
    disable_nagle_algorithm = True  # else a small chunk waits 40 ms for the one before it to be acknowledged

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def version_string(self) -> str:
        return self.double.dialect.server_header

    def log_message(self, format: str, *arguments: object) -> None:
        return  # a double says nothing of its requests

    def _answer(self, method: str) -> None:
        length = self.headers.get("Content-Length") or "0"
        raw = self.rfile.read(int(length) if length.isascii() and length.isdigit() else 0)
        answer = self.double.answer(method, urlsplit(self.path).path, raw)
        with suppress(OSError):  # a client that leaves early is no fault of ours
            if isinstance(answer, Hang):
                self.double.stopping.wait()
                self.close_connection = True
            elif isinstance(answer, Response):
                self._send(answer)
            else:
                self._stream(answer)

    def _send(self, response: Response) -> None:
        length = {"Content-Length": str(len(response.body))}
        self._head(response.status, response.content_type, {**response.headers, **length})
        self.wfile.write(response.body)

    def _stream(self, stream: EventStream) -> None:
        """Chunked where the server speaks HTTP/1.1, else up to the end of the connection, as mlx-lm does."""
        is_chunked = self.protocol_version == "HTTP/1.1"
        framing = {"Transfer-Encoding": "chunked"} if is_chunked else {}
        self._head(200, stream.content_type, {**stream.headers, **framing})
        with closing(stream.events):  # type: ignore[type-var]
            for piece in self._cut(stream.events):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
                self.wfile.flush()
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _cut(self, events: Iterator[str]) -> Iterator[bytes]:
        """The events as network chunks: one each, or of so many bytes, whatever lies under the knife."""
        faults = self.double.faults
        for text in events:
            whole = (KEEP_ALIVE * faults.keep_alives + text).replace("\n", faults.line_end).encode()
            step = faults.split_bytes or len(whole)
            yield from (whole[start : start + step] for start in range(0, len(whole), step))

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, **headers}.items():
            self.send_header(name, value)
        self.end_headers()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def listening(double: Double, port: int) -> Iterator[str]:
    """The address of a running server. Raises DoubleError when the port cannot be had."""
    bound = {"double": double, "protocol_version": double.dialect.http_version}
    try:
        server = Server((HOST, port), type("BoundHandler", (Handler,), bound))
    except (OSError, OverflowError) as error:
        raise DoubleError(f"port {port} cannot be used: {error}; 0 takes a free one") from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        double.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
