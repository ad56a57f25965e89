"""Two people at a server that others use, too: a tenant sends prompts, the operator sees counters and may reset."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from labbook import metrics
from labbook.bodies import chat_body
from labbook.client import Client
from labbook.connection import Connection
from labbook.prompts import body_bytes
from labbook.urls import parse

BUSY = 409

_SHAPE = frozenset({"system", "max_tokens", "temperature"})
_USER_SAYS = "Write it."
_TIMEOUT_S = 120.0
_PATIENCE_STEP_S = 0.05


class Tenant:
    """`salt` None: the pages are shared with everybody else who names none."""

    def __init__(self, base_url: str, model: str, salt: str | None = None) -> None:
        self._urls = parse(base_url)
        self._connection = Connection(self._urls)
        self._model, self._salt = model, salt

    def ask(self, text: str) -> float:
        """Send `text` as the system message; seconds until an answer of one token is there. Raises ServerError."""
        started_s = time.perf_counter()
        self._connection.text("POST", self._urls.chat, self._body(text, 1), _TIMEOUT_S)
        return time.perf_counter() - started_s

    @contextmanager
    def asking(self, text: str, max_tokens: int) -> Iterator[None]:
        """A long answer is being written while the block runs; at its end this client hangs up."""
        body = self._body(text, max_tokens, stream=True, ignore_eos=True)
        with self._connection.open("POST", self._urls.chat, body, _TIMEOUT_S) as (_, chunks):
            next(chunks)
            yield

    def close(self) -> None:
        self._connection.close()

    def _body(self, text: str, max_tokens: int, **more: Any) -> bytes:
        messages = [{"role": "system", "content": text}, {"role": "user", "content": _USER_SAYS}]
        salted = {} if self._salt is None else {"cache_salt": self._salt}
        return body_bytes(chat_body(self._model, messages, max_tokens, _SHAPE) | salted | more)


class Operator:
    """Who runs the server."""

    def __init__(self, base_url: str, model: str) -> None:
        self._client, self._model = Client(base_url), model
        self._session = requests.Session()
        self._session.trust_env = False  # loopback never goes through a proxy

    def hits_tokens(self) -> int:
        """Prompt tokens restored since the server started. Raises ServerError when there are no counters."""
        return int(metrics.read(self._client.metrics_page(), model=self._model).hits or 0)

    def reset(self, salt: str | None = None, patience_s: float = 0.0) -> tuple[int, str]:
        """Ask for an empty cache, or for the pages of one salt to be dropped: the answer's status, and its gist.

        A server that is busy is asked again until `patience_s` is over.
        """
        give_up_s = time.monotonic() + patience_s
        while True:
            answer = self._session.post(
                f"{self._client.urls.root}/reset_prefix_cache",
                json={} if salt is None else {"cache_salt": salt},
                timeout=_TIMEOUT_S,
            )
            if answer.status_code != BUSY or time.monotonic() >= give_up_s:
                return answer.status_code, _gist(answer.json())
            time.sleep(_PATIENCE_STEP_S)

    def close(self) -> None:
        self._client.close()
        self._session.close()


def _gist(body: dict[str, Any]) -> str:
    return str(body["error"]["message"]) if "error" in body else f"{body['pages_dropped']} pages dropped"
