"""One connection of a client: each request goes to the upstream and its answer comes back, byte by byte as they are."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from labbook.tap.exchange import Exchange
from labbook.tap.framing import CutShortError, FramingError, chunk, is_chunked, request_blocks
from labbook.tap.upstream import blocks, cut, end_to_end
from labbook.tap.watch import watching

if TYPE_CHECKING:
    from labbook.tap.server import Tap

ERROR_TYPE = "labbook_tap"  # tells an error of the tap from one of the upstream
_NO_BODY = (204, 304)
_CLIENT_LEFT = "the client left before the end of the answer"
_LAST_EVENT = b"data: [DONE]"


class _RefusedError(Exception):
    """The tap itself has to answer, with `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _EndedError(Exception):
    """One of the two ends went away, or the tap stops."""


class Relay(BaseHTTPRequestHandler):
    """Subclass it with a `tap`, and with its `timeout` in seconds for a client that neither sends nor reads."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    tap: Tap

    def log_message(self, format: str, *args: object) -> None:
        return  # the reporter tells

    def do_GET(self) -> None:
        # From the line itself: self.path has lost a leading slash where there were two.
        exchange = self.tap.begin(self.command, self.requestline.split()[1], self.headers.items())
        try:
            self._pass(exchange)
        except _RefusedError as refusal:
            self._refuse(exchange, refusal)
        except (_EndedError, CutShortError) as error:
            _fail(exchange, str(error))
            self.close_connection = True
        finally:
            self.tap.end(exchange)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET

    def _pass(self, exchange: Exchange) -> None:
        if not exchange.target.startswith("/"):
            raise _RefusedError(400, "this is no forward proxy: name it as the base URL of your application")
        try:
            asked = self._recorded(exchange, request_blocks(self.headers, self.rfile))
            connection = self._connected(asked)
            with self.tap.cuttable(connection.sock) as upstream_socket:
                try:
                    self._send(exchange, connection, asked)
                    self.tap.arrived(exchange)

                    def leave() -> None:
                        if not exchange.is_answered:  # else it has what it wanted, and closes first
                            _fail(exchange, _CLIENT_LEFT)
                            cut(upstream_socket)

                    with watching(self.connection, leave):
                        self._answer(exchange, self._awaited(exchange, connection))
                finally:
                    cut(upstream_socket)
                    connection.close()
        except FramingError as error:
            raise _RefusedError(400, str(error)) from None

    def _recorded(self, exchange: Exchange, asked: Iterator[bytes]) -> Iterator[bytes]:
        try:
            for block in asked:
                exchange.asked.add(block)
                yield block
        except OSError:
            raise CutShortError("the client left before its request was complete") from None

    def _connected(self, asked: Iterator[bytes]) -> http.client.HTTPConnection:
        try:
            return self.tap.upstream.connect()
        except OSError as error:
            for _ in asked:  # a client that still sends would not see the answer
                pass
            reason = error.strerror or str(error) or type(error).__name__
            raise _RefusedError(502, f"cannot reach the upstream {self.tap.upstream.urls.root}: {reason}") from None

    def _send(self, exchange: Exchange, connection: http.client.HTTPConnection, asked: Iterator[bytes]) -> None:
        headers = [(key, value) for key, value in end_to_end(exchange.headers) if key.lower() != "expect"]
        in_chunks = is_chunked(self.headers)
        if in_chunks:
            headers.append(("Transfer-Encoding", "chunked"))
        is_listening = True
        try:
            self.tap.upstream.send_head(connection, exchange.method, exchange.target, headers)
        except OSError:
            is_listening = False
        except (ValueError, http.client.HTTPException) as error:
            raise _RefusedError(400, f"the request cannot be passed on: {error}") from None
        for block in asked:
            is_listening = is_listening and _sent(connection, chunk(block) if in_chunks else block)
        if in_chunks and is_listening:
            _sent(connection, chunk(b""))

    def _awaited(self, exchange: Exchange, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        """The answer's head; an upstream that stopped listening early may still have sent one."""
        try:
            return connection.getresponse()
        except TimeoutError:
            waited_s = self.tap.upstream.timeout_s
            raise _RefusedError(504, f"the upstream sent nothing for {waited_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            self._give_up_when_ended(exchange)
            raise _RefusedError(502, f"the upstream gave no answer: {error or type(error).__name__}") from None

    def _answer(self, exchange: Exchange, answer: http.client.HTTPResponse) -> None:
        exchange.status, exchange.answer_headers = answer.status, answer.headers.items()
        has_body = self.command != "HEAD" and answer.status not in _NO_BODY
        exchange.is_answered = not has_body or answer.length == 0
        is_old_client = self.request_version != "HTTP/1.1"
        in_chunks = has_body and answer.length is None and not is_old_client
        self.close_connection = self.close_connection or is_old_client
        try:
            self.send_response_only(answer.status, answer.reason)
            for key, value in end_to_end(exchange.answer_headers):
                if not (has_body and answer.length is None and key.lower() == "content-length"):
                    self.send_header(key, value)
            if in_chunks:
                self.send_header("Transfer-Encoding", "chunked")
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
        except OSError:
            raise _EndedError(_CLIENT_LEFT) from None
        if has_body:
            for block in self._arriving(exchange, answer):
                self._write(chunk(block) if in_chunks else block)
        if in_chunks:
            self._write(chunk(b""))

    def _arriving(self, exchange: Exchange, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        length = answer.length
        try:
            for block in blocks(answer):
                exchange.answered.add(block)
                exchange.is_answered = exchange.answered.num_bytes == length
                yield block
            exchange.is_answered = True
        except TimeoutError:
            waited_s = self.tap.upstream.timeout_s
            raise _EndedError(f"the upstream sent nothing more for {waited_s:g} s") from None
        except (OSError, http.client.HTTPException):
            self._give_up_when_ended(exchange)
            raise _EndedError("the upstream broke off in the middle of the answer") from None

    def _give_up_when_ended(self, exchange: Exchange) -> None:
        """Raise _EndedError where it was not the upstream that failed: its connection was cut here."""
        if exchange.error:
            raise _EndedError(exchange.error)
        if self.tap.is_stopping:
            raise _EndedError("the tap was stopped")

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError:
            raise _EndedError(_CLIENT_LEFT) from None

    def _refuse(self, exchange: Exchange, refusal: _RefusedError) -> None:
        exchange.fail(str(refusal))
        body = json.dumps({"error": {"message": f"labbook tap: {refusal}", "type": ERROR_TYPE, "code": None}}).encode()
        self.close_connection = True
        try:
            self.send_response_only(refusal.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            return


def _fail(exchange: Exchange, why: str) -> None:
    """Nothing fails after the last event of a stream: some clients wait for no more, and nothing more is told."""
    if not exchange.answered.ends_with(_LAST_EVENT):
        exchange.fail(why)


def _sent(connection: http.client.HTTPConnection, data: bytes) -> bool:
    """False when the upstream listens no more: it may have answered already, as with 413."""
    try:
        connection.send(data)
    except OSError:
        return False
    return True
