"""One request's answer in OpenAI's shapes, whole or in chunks. The kinds differ in what a choice holds."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from minivllm.request import RequestOutput, TokenLogprobs
from minivllm.server.logprobs import TextLogprobs, TokenText, chat_logprobs
from minivllm.server.responses import timings, usage
from minivllm.server.version import version


class Answer(ABC):
    """`whole` once; or `opening`, a `delta` for each output, `ending`: the choice of one chunk each."""

    whole_object: str
    chunk_object: str

    def __init__(self, request_id: str, model_name: str, text_of: TokenText) -> None:
        self.request_id = request_id
        self.text_of = text_of
        self._model_name = model_name
        self._created = int(time.time())

    def whole(self, output: RequestOutput) -> dict[str, Any]:
        body = self._envelope(self.whole_object, [self.whole_choice(output)])
        return {**body, "usage": usage(output.metrics), "timings": timings(output.metrics)}

    def chunk(self, *choices: dict[str, Any]) -> dict[str, Any]:
        return self._envelope(self.chunk_object, choices)

    @abstractmethod
    def whole_choice(self, output: RequestOutput) -> dict[str, Any]: ...

    @abstractmethod
    def opening(self, output: RequestOutput) -> dict[str, Any] | None:
        """The choice that precedes the first text, if any does."""

    @abstractmethod
    def delta(self, output: RequestOutput) -> dict[str, Any]: ...

    @abstractmethod
    def ending(self, output: RequestOutput) -> dict[str, Any]: ...

    def _envelope(self, object_name: str, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.request_id,
            "object": object_name,
            "created": self._created,
            "model": self._model_name,
            "system_fingerprint": f"minivllm-{version()}",
            "choices": list(choices),
        }


class ChatAnswer(Answer):
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def whole_choice(self, output: RequestOutput) -> dict[str, Any]:
        message = {"role": "assistant", "content": output.text, "refusal": None}
        return _ended({"message": message, "logprobs": self._logprobs(output.logprobs)}, output)

    def opening(self, output: RequestOutput) -> dict[str, Any] | None:
        return _underway({"delta": {"role": "assistant", "content": ""}, "logprobs": None})

    def delta(self, output: RequestOutput) -> dict[str, Any]:
        return _underway({"delta": {"content": output.new_text}, "logprobs": self._logprobs(_new_rows(output))})

    def ending(self, output: RequestOutput) -> dict[str, Any]:
        return _ended({"delta": {}, "logprobs": None}, output)

    def _logprobs(self, rows: Sequence[TokenLogprobs] | None) -> dict[str, Any] | None:
        return None if rows is None else chat_logprobs(rows, self.text_of)


class TextAnswer(Answer):
    """`echo_text` is the prompt's text when it is to stand before the answer's, else None."""

    whole_object = chunk_object = "text_completion"

    def __init__(self, request_id: str, model_name: str, text_of: TokenText, echo_text: str | None) -> None:
        super().__init__(request_id, model_name, text_of)
        self._echo_text = echo_text
        self._text_logprobs = TextLogprobs(text_of)

    def whole_choice(self, output: RequestOutput) -> dict[str, Any]:
        echo_ids, echo_rows = self._echo(output)
        rows = None if output.logprobs is None else [*echo_rows, *output.logprobs]
        text = (self._echo_text or "") + output.text
        return _ended({"text": text, "logprobs": self._columns([*echo_ids, *output.token_ids], rows)}, output)

    def opening(self, output: RequestOutput) -> dict[str, Any] | None:
        if self._echo_text is None:
            return None
        echo_ids, echo_rows = self._echo(output)
        rows = None if output.logprobs is None else echo_rows
        return _underway({"text": self._echo_text, "logprobs": self._columns(echo_ids, rows)})

    def delta(self, output: RequestOutput) -> dict[str, Any]:
        return _underway({"text": output.new_text, "logprobs": self._columns(output.new_token_ids, _new_rows(output))})

    def ending(self, output: RequestOutput) -> dict[str, Any]:
        return _ended({"text": "", "logprobs": None}, output)

    def _echo(self, output: RequestOutput) -> tuple[Sequence[int], list[TokenLogprobs | None]]:
        if self._echo_text is None:
            return (), []
        return output.prompt_token_ids, list(output.prompt_logprobs or ())

    def _columns(self, token_ids: Sequence[int], rows: Sequence[TokenLogprobs | None] | None) -> dict[str, Any] | None:
        return None if rows is None else self._text_logprobs.columns(token_ids, rows)


def _new_rows(output: RequestOutput) -> list[TokenLogprobs] | None:
    """The rows of the tokens this output added. The list may hold later ones already: the engine goes on."""
    if output.logprobs is None:
        return None
    end = len(output.token_ids)
    return output.logprobs[end - len(output.new_token_ids) : end]


def _underway(content: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, **content, "finish_reason": None}


def _ended(content: dict[str, Any], output: RequestOutput) -> dict[str, Any]:
    return {"index": 0, **content, "finish_reason": output.finish_reason, "stop_reason": output.stop_reason}
