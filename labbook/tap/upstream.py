"""The server behind the tap: one connection for each request, and its answer as raw bytes.

`http.client` and not `requests`, for it changes nothing: no header is added, merged or reordered, no path is quoted
anew, nothing is decompressed, and no proxy of the environment is ever used.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from labbook.errors import ServerError, UsageError
from labbook.tap.exchange import Headers
from labbook.urls import ServerUrls, parse

CONNECT_TIMEOUT_S = 10.0
MAX_TIMEOUT_S = 86_400.0  # a day; a socket takes no endless number
BLOCK_BYTES = 65_536
_MAX_SIDE_ANSWER_BYTES = 16 * 2**20

# RFC 9110, 7.6.1, and what older clients send. They speak of one connection, and there are two here.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def end_to_end(headers: Headers) -> list[tuple[str, str]]:
    """The headers that are for the other end, in their order."""
    named = {name.strip().lower() for key, value in headers if key.lower() == "connection" for name in value.split(",")}
    return [(key, value) for key, value in headers if key.lower() not in _HOP_BY_HOP | named]


@dataclass(frozen=True)
class Upstream:
    """`timeout_s` is the longest wait for the next byte of an answer."""

    urls: ServerUrls
    timeout_s: float

    @property
    def port(self) -> int:
        parts = urlsplit(self.urls.root)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def authority(self) -> str:
        return urlsplit(self.urls.root).netloc

    def connect(self) -> http.client.HTTPConnection:
        """An open connection. Raises OSError."""
        timeout_s = min(CONNECT_TIMEOUT_S, self.timeout_s)
        if self.urls.root.startswith("https:"):
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self.urls.host, self.port, timeout=timeout_s
            )
        else:
            connection = http.client.HTTPConnection(self.urls.host, self.port, timeout=timeout_s)
        connection.connect()
        connection.sock.settimeout(self.timeout_s)
        return connection

    def send_head(self, connection: http.client.HTTPConnection, method: str, target: str, headers: Headers) -> None:
        """Request line and headers. The host is the upstream's, and the connection ends with the answer.

        Raises ValueError or http.client.HTTPException for what no request line or header can carry.
        """
        path = urlsplit(self.urls.root).path + target
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", self.authority)
        connection.putheader("Connection", "close")
        for key, value in headers:
            if key.lower() != "host":
                connection.putheader(key, value)
        connection.endheaders()

    def ask(self, target: str, body: bytes, headers: Headers, timeout_s: float) -> bytes:
        """The answer to a question of the tap's own. Raises ServerError unless it is a 200."""
        try:
            with contextlib.closing(self.connect()) as connection:
                connection.sock.settimeout(min(timeout_s, self.timeout_s))
                length = ("Content-Length", str(len(body)))
                self.send_head(connection, "POST", target, [("Content-Type", "application/json"), length, *headers])
                connection.send(body)
                answer = connection.getresponse()
                data = answer.read(_MAX_SIDE_ANSWER_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServerError(f"{target} of the upstream cannot be asked: {error}") from None
        if answer.status != 200:
            raise ServerError(f"{target} of the upstream answers {answer.status}")
        return data


def upstream_at(url: str, timeout_s: float) -> Upstream:
    """The upstream at a base URL in any usual form. Raises UsageError."""
    urls = parse(url)
    if urls.credentials:
        raise UsageError("the upstream URL holds a password: the tap adds none, give it to your application instead")
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise UsageError(f"timeout is {timeout_s:g} s: a number of seconds above 0, at most a day, is needed")
    return Upstream(urls, timeout_s)


def blocks(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """The bytes of an answer's body as they arrive, as they are.

    Raises OSError or http.client.HTTPException where the answer breaks off.
    """
    remaining = answer.length
    while remaining is None or remaining > 0:
        data = answer.read1(BLOCK_BYTES if remaining is None else min(BLOCK_BYTES, remaining))
        if not data:
            if remaining:
                raise http.client.IncompleteRead(b"", remaining)
            return
        if remaining is not None:
            remaining -= len(data)
        yield data


def cut(connection_socket: socket.socket) -> None:
    """End a connection at once, for the thread that waits on it too."""
    with contextlib.suppress(OSError):
        connection_socket.shutdown(socket.SHUT_RDWR)
