"""What becomes of an exchange that has ended: an entry in the private file, and a line for a person.

One thread does it, after the answer has passed, so that neither tokenizing nor a slow disk delays anything.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from typing import Any

from labbook.errors import LabbookError
from labbook.record import RecordError, from_line
from labbook.tap import answers, masking
from labbook.tap.cause import cause_of
from labbook.tap.exchange import Exchange, Headers, Recording
from labbook.tap.history import MAX_PROMPTS, History, Prompt, Shared
from labbook.tap.private_file import PrivateFile
from labbook.tap.readable import TimedBytes, UnreadableError, decoded, text
from labbook.tap.tokens import TokenCounter

ENTRY_VERSION = 1

Entry = dict[str, Any]


class Reporter:
    """`tell` gets each entry, without the two bodies; `warn` gets a sentence when something was not recorded."""

    def __init__(
        self,
        file: PrivateFile | None,
        counter: TokenCounter | None,
        tell: Callable[[Entry], None],
        warn: Callable[[str], None],
    ) -> None:
        self._file, self._counter = file, counter
        self._tell, self._warn = tell, warn
        self._history = History()
        self._events: queue.Queue[tuple[Callable[[Exchange], None], Exchange] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="tap-reporter", daemon=True)
        self._thread.start()

    def arrived(self, exchange: Exchange) -> None:
        """The request of this exchange is complete."""
        self._events.put((self._remember, exchange))

    def ended(self, exchange: Exchange) -> None:
        self._events.put((self._report, exchange))

    def finish(self, timeout_s: float) -> None:
        """Wait until everything that has ended is reported."""
        self._events.put(None)
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            handle, exchange = event
            try:
                handle(exchange)
            except Exception as error:  # the next exchange is reported all the same
                self._warn(f"request {exchange.number} could not be reported: {error!r}")

    def _remember(self, exchange: Exchange) -> None:
        try:
            body = json.loads(text(decoded(exchange.asked, exchange.headers)))
        except (UnreadableError, ValueError, RecursionError):
            return
        self._history.add(exchange.number, exchange.path, body)

    def _report(self, exchange: Exchange) -> None:
        entry, bodies = self._entry(exchange)
        try:
            if self._file is not None:
                self._file.append(entry | bodies)
        except LabbookError as error:
            self._warn(str(error))
        self._tell(entry)

    def _entry(self, exchange: Exchange) -> tuple[Entry, Entry]:
        secrets = masking.secrets_of(exchange.headers, exchange.target)
        absent: dict[str, str] = {}
        request, _ = _readable(exchange.asked, exchange.headers, "request", secrets, absent)
        answer, chunks = _readable(exchange.answered, exchange.answer_headers, "answer", secrets, absent)
        told = answers.told(exchange, chunks)
        if told["answer_error"] is not None:
            told["answer_error"] = masking.masked(told["answer_error"], secrets)
        first_s = exchange.answered.chunks[0][0] - exchange.started_s if exchange.answered.chunks else None
        shared, cause = self._prefix(exchange, told["prompt_tokens"])
        entry = {
            "version": ENTRY_VERSION,
            "number": exchange.number,
            "recorded_at": exchange.recorded_at,
            "method": exchange.method,
            "target": masking.shown_target(exchange.target),
            "status": exchange.status,
            "error": None if exchange.error is None else masking.masked(exchange.error, secrets),
            "first_byte_s": None if first_s is None else round(first_s, 6),
            "total_s": round(exchange.ended_s - exchange.started_s, 6),
            **told,
            "shared": shared,
            "cause": cause,
            "request_headers": masking.harmless(exchange.headers),
            "answer_headers": masking.harmless(exchange.answer_headers),
            "request_bytes": exchange.asked.num_bytes,
            "request_sha256": exchange.asked.sha256,
            "answer_bytes": exchange.answered.num_bytes,
            "answer_sha256": exchange.answered.sha256,
        }
        entry["absent"] = told["absent"] | absent
        return entry, _bodies(request, answer)

    def _prefix(self, exchange: Exchange, prompt_tokens: int | None) -> tuple[Entry | None, str | None]:
        def tokenize(prompt: Prompt) -> list[int] | None:
            return self._tokens(prompt, exchange, prompt_tokens)

        found = self._history.best_earlier(exchange.number, tokenize)
        if found is None:
            return None, None
        shared, earlier, own = found
        return _shared_fields(shared), cause_of(earlier.body, own.body) if shared.diverges else None

    def _tokens(self, prompt: Prompt, exchange: Exchange, prompt_tokens: int | None) -> list[int] | None:
        """Token ids that agree with what the answer counted; others were rendered in another way."""
        if self._counter is None:
            return None
        tokens = self._counter.tokens_of(prompt, exchange.headers)
        self._counter.forget_before(exchange.number - MAX_PROMPTS)
        is_own = prompt.number == exchange.number
        if tokens is None or (is_own and prompt_tokens is not None and len(tokens) != prompt_tokens):
            return None
        return tokens


def _bodies(request: str | None, answer: str | None) -> Entry:
    """A request that is a JSON object is kept as one, under the name by which `labbook explain` finds it."""
    try:
        return {"body": from_line(request or ""), "request_text": None, "answer_text": answer}
    except RecordError:
        return {"body": None, "request_text": request, "answer_text": answer}


def _shared_fields(shared: Shared) -> Entry:
    return {
        "with": shared.number,
        "length": shared.length,
        "of": shared.of,
        "earlier_of": shared.earlier_of,
        "unit": shared.unit,
        "diverges": shared.diverges,
    }


def _readable(
    recording: Recording, headers: Headers, name: str, secrets: list[str], absent: dict[str, str]
) -> tuple[str | None, TimedBytes]:
    """The body as masked text, or None and the reason in `absent`; and its decompressed chunks."""
    chunks: TimedBytes = []
    try:
        chunks = decoded(recording, headers)
        return masking.masked(text(chunks), secrets), chunks
    except UnreadableError as error:
        absent[name] = str(error)
        return None, chunks
