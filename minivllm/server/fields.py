"""Which fields a request may carry. Each is used, known to change nothing, or refused (SV-02)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from minivllm.server.errors import ApiError

Model = TypeVar("Model", bound=BaseModel)

MAX_NAME_CHARS = 80

HARMLESS = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
"""Fields of OpenAI's API that never change an answer's text."""

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "continue_final_message": (False,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": (),
    "functions": ([],),
    "include_reasoning": (True,),
    "include_stop_str_in_output": (False,),
    "logit_bias": ({},),
    "min_p": (0,),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "n": (1,),
    "no_stop_trim": (False,),
    "prediction": (),
    "presence_penalty": (0,),
    "priority": (0,),
    "prompt_logprobs": (),
    "reasoning_effort": (),
    "repetition_penalty": (1,),
    "response_format": ({"type": "text"},),
    "return_hidden_states": (False,),
    "return_tokens_as_token_ids": (False,),
    "separate_reasoning": (True,),
    "skip_special_tokens": (True,),
    "stream_reasoning": (True,),
    "suffix": ("",),
    "top_k": (-1, 0),
    "verbosity": (),
    "web_search_options": (),
}
"""Fields that would change an answer but are not supported, with the values that ask for nothing."""


def parse(model: type[Model], body: Mapping[str, Any]) -> Model:
    """`body` as `model`. Raises `ApiError` 400 that names the field, the value and what would be right.

    A field that is null counts as left out, as OpenAI's own clients send it.
    """
    given = {name: value for name, value in body.items() if value is not None}
    settled = {name: value for name, value in given.items() if _is_used(name, value, model.model_fields)}
    try:
        return model.model_validate(settled)
    except ValidationError as error:
        raise _explain(error, model.model_fields) from None


def nearest(name: str, known: Collection[str]) -> str:
    """The end of a sentence: ": did you mean ...?" when a known name is close, else nothing."""
    if len(name) > MAX_NAME_CHARS:  # comparing takes time and finds nothing
        return ""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f": did you mean {close[0]!r}?" if close else ""


def _is_used(name: str, value: Any, known: Collection[str]) -> bool:
    if name in known:
        return True
    if name in HARMLESS:
        return False
    if name not in NEUTRAL:
        raise unknown_field(name, {*known, *HARMLESS, *NEUTRAL})
    if any(value == allowed and isinstance(value, bool) == isinstance(allowed, bool) for allowed in NEUTRAL[name]):
        return False
    only = "".join(f" or give {allowed!r}" for allowed in NEUTRAL[name])
    message = f"{name}={value!r:.80} is not supported here: leave it out{only}"
    raise ApiError(400, message, code="unsupported_parameter", param=name)


def unknown_field(name: str, known: Collection[str]) -> ApiError:
    message = f"unknown field {name!r}{nearest(name, known)}"
    return ApiError(400, message, code="unknown_parameter", param=name)


def _explain(error: ValidationError, known: Collection[str]) -> ApiError:
    """The first fault pydantic found, in this API's words."""
    fault = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    param = where or None
    if fault["type"] == "extra_forbidden":
        return unknown_field(where, known)
    if fault["type"] == "missing":
        return ApiError(400, f"{where} is required", code="missing_parameter", param=param)
    if fault["type"] in ("too_short", "string_too_short"):
        return ApiError(400, f"{where} is empty: give at least one", code="invalid_value", param=param)
    reason = fault["msg"].removeprefix("Value error, ")
    value = "" if fault["type"] == "value_error" else f" (got {fault['input']!r:.80})"
    return ApiError(400, f"{where}: {reason}{value}", code="invalid_value", param=param)
