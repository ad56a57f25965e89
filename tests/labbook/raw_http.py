"""HTTP spoken byte by byte: an upstream that answers with given bytes, and what it and a client saw."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

WAIT_S = 20.0

Answer = Callable[["Seen"], None]


@dataclass
class Seen:
    """One request as it reached the upstream. `send` answers; `left` waits until the other end has closed."""

    head: bytes
    body: bytes
    connection: socket.socket

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def left(self) -> bool:
        with contextlib.suppress(ConnectionError):
            return self.connection.recv(1) == b""
        return True

    def drain(self) -> None:
        read_to_end(self.connection)

    @property
    def request_line(self) -> bytes:
        return self.head.split(b"\r\n")[0]

    @property
    def headers(self) -> list[bytes]:
        return self.head.split(b"\r\n")[1:]


@dataclass
class RawUpstream:
    answer: Answer
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    reads_bodies: bool = True

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def _serve_one(self, connection: socket.socket) -> None:
        connection.settimeout(WAIT_S)
        with connection, contextlib.suppress(OSError):
            head, rest = read_head(connection)
            request = Seen(head, read_body(connection, head, rest) if self.reads_bodies else b"", connection)
            self.seen.append(request)
            self.answer(request)


@contextlib.contextmanager
def raw_upstream(answer: Answer | bytes) -> Iterator[RawUpstream]:
    """An upstream that answers every request with these bytes, or as the function does, and then closes."""
    upstream = RawUpstream((lambda request: request.send(answer)) if isinstance(answer, bytes) else answer)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=upstream.serve, args=(listener,), daemon=True).start()
        yield upstream
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as client:
        yield client


def ask(url: str, request: bytes) -> bytes:
    """Send these bytes and return everything that comes until the other end closes."""
    with connected(url) as client:
        client.sendall(request)
        return read_to_end(client)


def post(target: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: tap", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def get(target: str, *headers: str, method: str = "GET") -> bytes:
    return (
        "\r\n".join([f"{method} {target} HTTP/1.1", "Host: tap", "Connection: close", *headers]).encode() + b"\r\n\r\n"
    )


def ok(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]).encode() + b"\r\n\r\n" + body


def read_to_end(client: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while block := client.recv(65_536):
            data += block
    return data


def read_until(client: socket.socket, words: bytes) -> bytes:
    data = b""
    while words not in data:
        block = client.recv(65_536)
        assert block, f"closed after {data!r}"
        data += block
    return data


def read_head(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def received(connection: socket.socket) -> bytes:
    """What has come. The end of the stream is an error here: read again, it would say nothing for ever."""
    block = connection.recv(1 << 20)
    if not block:
        raise ConnectionResetError
    return block


def read_body(connection: socket.socket, head: bytes, rest: bytes) -> bytes:
    """The body by its length; one in chunks as it stands on the wire, frames included."""
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    blocks, num_bytes = [rest], len(rest)
    if fields.get(b"transfer-encoding") == b"chunked":
        while not b"".join(blocks).endswith(b"0\r\n\r\n"):
            blocks.append(received(connection))
        return b"".join(blocks)
    while num_bytes < int(fields.get(b"content-length", 0)):
        blocks.append(received(connection))
        num_bytes += len(blocks[-1])
    return b"".join(blocks)
