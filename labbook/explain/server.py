"""Bodies rendered by the server that answers them: vLLM's `/tokenize`, or llama-server's `/apply-template` first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from labbook.connection import Connection, parsed_json
from labbook.errors import LabbookError, ServerError
from labbook.explain.body import Body
from labbook.explain.rendered import Rendered, decoded
from labbook.prompts import body_bytes
from labbook.urls import parse

_CHAT_FIELDS = ("messages", "tools", "documents", "chat_template_kwargs", "add_generation_prompt")
_TIMEOUT_S = 30.0


class ServerRenderer:
    """Renders by asking the server at `base_url`. `model` replaces the model that the bodies name.

    Raises ServerError when the server cannot be reached, refuses a body, or has no address that tokenizes.
    """

    def __init__(
        self, base_url: str, *, model: str | None = None, api_key: str | None = None, timeout_s: float = _TIMEOUT_S
    ) -> None:
        self._urls = parse(base_url)
        self._connection = Connection(self._urls, api_key)
        self._model = model
        self._timeout_s = timeout_s

    def close(self) -> None:
        self._connection.close()

    def render(self, body: Body) -> Rendered:
        ids = body.prompt_ids if body.prompt_ids is not None else self._ids(body)
        return decoded(body, ids, self._decoder(body))

    def _ids(self, body: Body) -> list[int]:
        """vLLM's form first; llama-server reads no `messages` there, and answers without tokens."""
        try:
            tokens = _tokens(self._post("/tokenize", self._vllm_form(body)))
        except ServerError as error:
            refusal: ServerError | None = error
        else:
            refusal = None
            if tokens:
                return tokens
        try:
            text = body.prompt_text if not body.is_chat else self._templated(body)
            tokens = _tokens(self._post("/tokenize", {"content": text, "add_special": True, "parse_special": True}))
        except ServerError as error:
            raise _cannot(refusal or error) from None
        if not tokens:
            raise _cannot(refusal or ServerError("its /tokenize gives no tokens"))
        return tokens

    def _vllm_form(self, body: Body) -> dict[str, Any]:
        names = _CHAT_FIELDS if body.is_chat else ("add_special_tokens",)
        asked = {name: body.value[name] for name in names if body.value.get(name) is not None}
        return self._named({**asked, **({} if body.is_chat else {"prompt": body.prompt_text})}, body)

    def _templated(self, body: Body) -> str:
        asked = {name: body.value[name] for name in _CHAT_FIELDS if body.value.get(name) is not None}
        told = self._post("/apply-template", asked)
        text = told.get("prompt")
        if not isinstance(text, str):
            raise ServerError("its /apply-template gives no prompt")
        return text

    def _decoder(self, body: Body) -> Callable[[Sequence[int]], str]:
        def decode(ids: Sequence[int]) -> str:
            if not ids:
                return ""
            told = self._post("/detokenize", self._named({"tokens": list(ids)}, body))
            text = told.get("prompt", told.get("content"))
            if not isinstance(text, str):
                raise ServerError("its /detokenize gives no text: name a local tokenizer with --tokenizer")
            return text

        return decode

    def _named(self, asked: dict[str, Any], body: Body) -> dict[str, Any]:
        model = self._model or body.value.get("model")
        return {"model": model, **asked} if model else asked

    def _post(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        told = parsed_json(self._connection.text("POST", self._urls.root + path, body_bytes(asked), self._timeout_s))
        if not isinstance(told, dict):
            raise ServerError(f"the server's {path} answers no JSON object")
        return told


def _tokens(told: dict[str, Any]) -> list[int]:
    tokens = told.get("tokens")
    listed = tokens if isinstance(tokens, list) else []
    ids = [token.get("id") if isinstance(token, dict) else token for token in listed]
    return [token for token in ids if type(token) is int] if all(type(token) is int for token in ids) else []


def _cannot(error: LabbookError) -> ServerError:
    return ServerError(
        f"the server cannot tokenize this body: {error} (a local --tokenizer can; without either, words are compared)"
    )
