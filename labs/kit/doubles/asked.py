"""A chat request's body, read as leniently as the real servers do: fields they do not know are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minivllm.config import ConfigError, SamplingParams


class BadRequestError(ValueError):
    """The request asks for something that no engine can do; its text goes into the dialect's own error."""


@dataclass(frozen=True)
class Asked:
    model: str | None
    messages: list[dict[str, Any]]
    params: SamplingParams
    stream: bool
    include_usage: bool
    cache_salt: str | None
    id_slot: int | None
    cache_prompt: bool


def read_asked(body: dict[str, Any], *, max_tokens: int, temperature: float) -> Asked:
    """`max_tokens` and `temperature` are what the engine takes when the body names none. Raises BadRequestError."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise BadRequestError("messages must be a list of objects with a role and a text as content")
    salt = body.get("cache_salt")
    if salt is not None and not (isinstance(salt, str) and salt):
        raise BadRequestError(f"cache_salt must be a non-empty string, not {salt!r:.80}")
    options = body.get("stream_options") or {}
    slot = body.get("id_slot", -1)
    return Asked(
        model=body.get("model"),
        messages=messages,
        params=_params(body, max_tokens, temperature),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        cache_salt=salt,
        id_slot=slot if isinstance(slot, int) and slot >= 0 else None,
        cache_prompt=body.get("cache_prompt", True) is not False,
    )


def _params(body: dict[str, Any], max_tokens: int, temperature: float) -> SamplingParams:
    asked_tokens = body.get("max_completion_tokens") or body.get("max_tokens") or max_tokens
    asked_temperature = body.get("temperature")
    try:
        return SamplingParams(
            max_tokens=asked_tokens,
            temperature=temperature if asked_temperature is None else asked_temperature,
            top_p=body.get("top_p") or 1.0,
            seed=body.get("seed"),
            stop=body.get("stop") or (),
        )
    except (ConfigError, TypeError) as error:
        raise BadRequestError(str(error)) from None


def _is_message(message: object) -> bool:
    return (
        isinstance(message, dict) and isinstance(message.get("role"), str) and isinstance(message.get("content"), str)
    )
