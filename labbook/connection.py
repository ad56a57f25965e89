"""HTTP to one server. Whatever it answers, the caller gets bytes with their times, or a ServerError to act on.

Loopback never goes through a proxy, and a deadline covers the whole exchange, a hang in the middle included.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labbook.answer import error_text
from labbook.errors import ServerError, UsageError
from labbook.urls import ServerUrls

if TYPE_CHECKING:
    import requests

TimedChunks = Iterator[tuple[float, bytes]]

_CHUNK_BYTES = 65_536
_MAX_ANSWER_BYTES = 64 * 2**20
_MAY_BE_THE_BODY = (400, 422, 500)
_ADVICE = {
    401: "the server wants an API key: name its environment variable with --api-key-env",
    403: "the key was refused, or has no right to this model",
    404: "no such address or model: check the base URL and --model",
    405: "this address takes no chat requests: check the base URL",
    429: "the server limits its rate: wait, and measure when it is idle",
    503: "the server is not ready: wait until it has loaded its model",
}
_CAUSES = (
    "Connection refused",
    "Name or service not known",
    "nodename nor servname",
    "No route to host",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Connection reset by peer",
    "Remote end closed connection",
)


class RefusedError(ServerError):
    """The server answered with a status that a smaller body may avoid."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """A session with one server. An API key is sent, and never shown."""

    def __init__(self, urls: ServerUrls, api_key: str | None = None) -> None:
        if api_key is not None and not re.fullmatch(r"[\x21-\x7e]+", api_key):
            raise UsageError("the API key is empty or holds characters that no HTTP header can carry")
        self._secrets = [secret for secret in (api_key, *(urls.credentials or ())) if secret]
        self._session = _session(urls, api_key)

    def close(self) -> None:
        self._session.close()

    def text(
        self, method: str, url: str, data: bytes | None, timeout_s: float, max_bytes: int = _MAX_ANSWER_BYTES
    ) -> str:
        """The whole body of a successful exchange. Raises ServerError when it is longer than `max_bytes`."""
        with self.open(method, url, data, timeout_s) as (_, chunks):
            return joined(chunks, max_bytes)

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        url: str,
        data: bytes | None,
        timeout_s: float,
    ) -> Iterator[tuple[str, TimedChunks]]:
        """Content type and timed chunks of a successful answer. Raises ServerError for every other outcome."""
        import requests
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        deadline_s = time.perf_counter() + timeout_s
        late = ServerError(
            f"no complete answer from {url} within {timeout_s:g} s: raise the timeout if the server is only slow"
        )
        try:
            response = self._session.request(
                method, url, data=data, timeout=timeout_s, stream=True, allow_redirects=False
            )
            with response:
                _refuse_unknown_encoding(response, url)
                chunks = _timed_chunks(response, deadline_s, late)
                if response.status_code != 200:
                    raise self._refusal(response, url, joined(chunks))
                yield response.headers.get("Content-Type", "").lower(), chunks
        except (requests.Timeout, ReadTimeoutError, TimeoutError):
            raise late from None
        except requests.exceptions.SSLError as error:
            raise ServerError(f"no secure connection to {url}: {self.safe(str(error))[:300]}") from None
        except requests.ConnectionError as error:
            raise ServerError(f"cannot reach {url}: {_root_cause(error)}. Is the server running there?") from None
        except (requests.RequestException, HTTPError, OSError) as error:
            raise ServerError(f"the connection to {url} broke: {self.safe(str(error))[:300]}") from None

    def safe(self, text: str) -> str:
        """The text without the API key, which some servers repeat in their errors."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def _refusal(self, response: requests.Response, url: str, body: str) -> ServerError:
        status = response.status_code
        if 300 <= status < 400:
            return ServerError(f"{url} redirects to {response.headers.get('Location')}: use that as the base URL")
        is_chat = response.request.method == "POST"  # a GET is a question that a server may well not know
        advice = f" ({_ADVICE[status]})" if status in _ADVICE and is_chat else ""
        message = f"{url} answered {status}: {self.safe(what_it_said(body))}{advice}"
        return RefusedError(message, status) if status in _MAY_BE_THE_BODY else ServerError(message)


def joined(chunks: TimedChunks, max_bytes: int = _MAX_ANSWER_BYTES) -> str:
    """The text of all chunks. Raises ServerError beyond `max_bytes`: an endless answer must not fill the memory."""
    body = bytearray()
    for _, chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise ServerError(f"the answer is longer than {max_bytes / 2**20:g} MiB: is this the right address?")
    return body.decode("utf-8", errors="replace")


def read_json(text: str) -> Any:
    """The value of a JSON text, with null for NaN and infinities, which some servers send and no record can hold.

    Raises ValueError or RecursionError.
    """
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite_or_none)


def parsed_json(text: str) -> Any:
    """The JSON value of a body. Raises ServerError that says what came instead."""
    if not text.strip():
        raise ServerError("the server sent an empty answer: is this the right port and base URL?")
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        raise ServerError(
            f"the server answered not in JSON but with {what_it_said(text)}: "
            "is this the base URL of an OpenAI-compatible server?"
        ) from None


def what_it_said(text: str) -> str:
    """The gist of an error body: a JSON message, the title of an HTML page, or the first words."""
    if not text.strip():
        return "an empty body"
    if text.lstrip()[:1] == "<":
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        return "an HTML page" + (f" titled {' '.join(title.group(1).split())[:80]!r}" if title else "")
    with contextlib.suppress(ValueError, RecursionError):
        if message := error_text(read_json(text)):
            return message[:300]
    return " ".join(text.split())[:200]


def _finite_or_none(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _session(urls: ServerUrls, api_key: str | None) -> requests.Session:
    import requests

    session = requests.Session()
    session.trust_env = not urls.is_loopback
    session.headers.update({"Content-Type": "application/json", "Accept-Encoding": "identity"})

    # As `auth` rather than as a header: requests replaces an Authorization header by what ~/.netrc holds.
    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if api_key is not None:
            request.headers["Authorization"] = f"Bearer {api_key}"
        return request

    session.auth = urls.credentials if urls.credentials and api_key is None else sign
    return session


def _refuse_unknown_encoding(response: requests.Response, url: str) -> None:
    """Raise ServerError for a compressed answer that urllib3 cannot undo here; `identity` was asked for."""
    from urllib3.response import HTTPResponse

    named = response.headers.get("Content-Encoding", "").lower()
    encodings = {name.strip() for name in named.split(",")} - {"", "identity"}
    if not encodings <= set(HTTPResponse.CONTENT_DECODERS):
        raise ServerError(
            f"{url} answers in Content-Encoding {named}, which cannot be read here: let it, or the proxy before it, "
            "send plain answers"
        )


def _timed_chunks(response: requests.Response, deadline_s: float, late: ServerError) -> TimedChunks:
    """Bytes with the time at which they arrived, until the end or the deadline."""
    raw = response.raw
    while True:
        remaining_s = deadline_s - time.perf_counter()
        if remaining_s <= 0:
            raise late
        _let_reads_last(raw, remaining_s)
        # read() would wait for a full buffer on a stream without chunks
        chunk = raw.read1(_CHUNK_BYTES, decode_content=True)
        if not chunk:
            return
        yield time.perf_counter(), chunk


def _let_reads_last(raw: Any, seconds: float) -> None:
    """Bound the next read by what is left of the deadline; requests bounds each read by the whole of it."""
    socket = getattr(getattr(raw, "_connection", None), "sock", None)
    if socket is None:  # the connection closes after this answer, and only the open file still knows the socket
        file = getattr(getattr(raw, "_fp", None), "fp", None)
        socket = getattr(getattr(file, "raw", None), "_sock", None)
    if socket is not None:
        socket.settimeout(seconds)


def _root_cause(error: BaseException) -> str:
    text = str(error)
    return next((known.lower() for known in _CAUSES if known in text), text[:200])
