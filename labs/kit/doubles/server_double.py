"""A double: one dialect, one real engine, one set of faults, and what becomes of each request between them."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator, Sequence
from time import sleep
from typing import Any

from labs.kit.doubles import meddling, proxy_errors
from labs.kit.doubles.asked import Asked, BadRequestError, read_asked
from labs.kit.doubles.dialect import Dialect
from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.faults import Faults
from labs.kit.doubles.replying import Replying
from labs.kit.doubles.response import EventStream, Hang, Response, event
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.telling import Teller
from labs.kit.doubles.tiny_engine import TinyEngine
from minivllm.config import SamplingParams
from minivllm.request import RequestOutput
from minivllm.server.errors import ApiError

CHAT_PATH = "/v1/chat/completions"


class Double:
    """Answers requests, given as method, path and body; `listening.py` speaks HTTP around it."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.faults: Faults = dialect.faults
        self.base_url = ""
        self.engine = TinyEngine(dialect.engine_config(), dialect.make_memory, self.faults.computed_token_delay_s)
        self.stopping = threading.Event()
        self._num_chats = 0
        self._counting = threading.Lock()
        try:
            self._begin()
        except ApiError as error:
            self.close()
            raise DoubleError(f"the server's own first request failed: {error}") from None

    @property
    def model(self) -> str:
        return self.dialect.model

    def close(self) -> None:
        self.stopping.set()
        self.engine.close()

    def answer(self, method: str, path: str, raw: bytes) -> Response | EventStream | Hang:
        """What this server answers, as a whole or as a stream whose computing has not begun."""
        dialect = self.dialect
        if (method, path) == ("POST", CHAT_PATH):
            return self._chat(raw)
        if (method, path) == ("GET", "/metrics") and self.faults.counters != "absent":
            return dialect.metrics(self.tally)
        body = _json_object(raw) if method == "POST" else {}
        if isinstance(body, json.JSONDecodeError):
            return dialect.bad_json(body.msg, body.lineno, body.colno)
        if isinstance(body.get("messages"), list):  # other routes render as the chat route does
            body["messages"] = meddling.with_clock(body["messages"], self.faults)
        try:
            return dialect.side_route(method, path, body, self.engine) or dialect.unknown_route(path)
        except Exception as error:  # a template's refusal, token ids that are none: the request's fault, in words
            return dialect.error(400, str(error) or type(error).__name__)

    def _chat(self, raw: bytes) -> Response | EventStream | Hang:
        number, is_first = self._count_chat()
        faults, dialect = self.faults, self.dialect
        if faults.error and faults.error_at_request in (None, number):
            return dialect.unauthorized() if faults.error == "unauthorized" else proxy_errors.RESPONSES[faults.error]
        body = _json_object(raw)
        if isinstance(body, json.JSONDecodeError):
            return dialect.bad_json(body.msg, body.lineno, body.colno)
        if reason := meddling.refusal(body, faults):
            return dialect.error(400, reason)
        try:
            asked = read_asked(body, max_tokens=dialect.default_max_tokens, temperature=dialect.default_temperature)
        except BadRequestError as error:
            return dialect.error(400, str(error))
        if dialect.serves_only_its_model and asked.model not in (None, self.model):
            return dialect.unknown_model(str(asked.model))
        is_hanging = number == faults.hangs_at_request
        if is_hanging and not (faults.hangs_mid_stream and asked.stream):
            return Hang()
        return self._compute(asked, number, is_first=is_first, is_hanging=is_hanging)

    def _compute(self, asked: Asked, number: int, *, is_first: bool, is_hanging: bool) -> Response | EventStream:
        try:
            text = self.engine.render(meddling.with_clock(asked.messages, self.faults))
            prompt = self.engine.encode(text)
            self.engine.facts.limits.check(prompt, asked.params)
            self._run_stranger(number)
        except Exception as error:  # a template is a program of the model's; limits speak in the engine's words
            return self.dialect.error(400, str(error))
        if is_first:
            sleep(self.faults.slow_first_request_s)
        as_if_cached = self.teller.as_if_cached(prompt)
        salt = f"request {number}" if self.faults.salted else asked.cache_salt
        replying = Replying(
            asked,
            self._outputs(asked, prompt, salt, as_if_cached),
            lambda metrics: self.teller.counts(metrics, as_if_cached),
            has_usage=self.faults.usage != "absent",
        )
        if asked.stream:
            return EventStream(self._events(replying, is_hanging=is_hanging), headers=self.dialect.stream_headers)
        try:
            return self.dialect.whole(replying)
        except ApiError as error:
            return self.dialect.error(error.status, str(error))

    def _outputs(
        self, asked: Asked, prompt: Sequence[int], salt: str | None, as_if_cached: int
    ) -> Generator[RequestOutput, None, None]:
        """Runs the prompt with what the memory lets it find, and counts it when it has ended."""
        memory = self.engine.memory
        grant = memory.begin(prompt, may_reuse=asked.cache_prompt, slot=asked.id_slot) if memory else None
        output: RequestOutput | None = None
        try:
            for output in self.engine.run(prompt, asked.params, salt):
                if output.finish_reason is not None:
                    self.teller.count(self.tally, output.metrics, as_if_cached)
                yield output
        finally:
            if memory and grant:
                memory.end(grant, [*prompt, *(output.token_ids if output else ())])

    def _events(self, replying: Replying, *, is_hanging: bool) -> Iterator[str]:
        try:
            for text in self.dialect.events(replying):
                yield text
                if is_hanging:
                    self.stopping.wait()
        except ApiError as error:  # the status has been sent: all that is left is an event
            yield event(self.dialect.error(error.status, str(error)).body.decode())
        finally:
            replying.close()

    def _run_stranger(self, number: int) -> None:
        """Somebody else's request, computed and counted like any other."""
        if self.faults.foreign_tokens:
            prompt = meddling.stranger_prompt(self.faults.foreign_tokens, number, self.engine.facts.limits.vocab_size)
            *_, final = self.engine.run(prompt, SamplingParams(max_tokens=1, temperature=0.0), "stranger")
            self.teller.count(self.tally, final.metrics)

    def _count_chat(self) -> tuple[int, bool]:
        """The number of this chat request, and whether it is the first since the engine started."""
        with self._counting:
            self._num_chats += 1
            if self._num_chats == self.faults.restarts_at_request:
                self.engine.restart()
                self._begin()
            return self._num_chats, self._num_chats in (1, self.faults.restarts_at_request)

    def _begin(self) -> None:
        """Counters and stories of a server that has just started."""
        self.tally = Tally()
        self.teller = Teller(self.faults, self.engine, self.dialect.page_size)
        self.dialect.warm_up(self.engine, self.tally)


def _json_object(raw: bytes) -> dict[str, Any] | json.JSONDecodeError:
    try:
        body = json.loads(raw.decode("utf-8", errors="replace") or "{}")
    except json.JSONDecodeError as error:
        return error
    except RecursionError:
        return {}
    return body if isinstance(body, dict) else {}
