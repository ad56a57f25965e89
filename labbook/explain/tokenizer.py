"""Bodies rendered by a tokenizer and its chat template on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from labbook.errors import LabbookError, UsageError
from labbook.explain.body import Body, content_text
from labbook.explain.rendered import Rendered, decoded


class ChatTokenizer(Protocol):
    """What is asked of a tokenizer; the mini engine's has it."""

    def render_chat(
        self,
        messages: Sequence[Any],
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        **more: Any,
    ) -> str: ...

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str: ...


class TokenizerRenderer:
    """Renders with `tokenizer`. Raises LabbookError when its template refuses a body."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer

    def render(self, body: Body) -> Rendered:
        return decoded(body, self._ids(body), self._decode)

    def _ids(self, body: Body) -> list[int]:
        if body.prompt_ids is not None:
            return body.prompt_ids
        if not body.is_chat:
            return self._encode(body.prompt_text, bool(body.value.get("add_special_tokens", True)))
        messages = [_template_message(message) for message in body.messages]
        is_open = bool(body.value.get("add_generation_prompt", True))
        try:
            text = self._tokenizer.render_chat(messages, body.tools or None, is_open, **body.template_arguments)
        except Exception as error:  # a template is a program of the model's, and fails with errors of every type
            raise LabbookError(f"the chat template refuses this body: {error}") from None
        return self._encode(text, False)  # the template writes BOS itself

    def _encode(self, text: str, add_special_tokens: bool) -> list[int]:
        try:
            return self._tokenizer.encode(text, add_special_tokens)
        except (TypeError, ValueError) as error:  # JSON can spell half a character
            raise LabbookError(f"the tokenizer cannot encode this body: {error}") from None

    def _decode(self, ids: Sequence[int]) -> str:
        try:
            return self._tokenizer.decode(list(ids), skip_special_tokens=False)
        except (OverflowError, TypeError, ValueError) as error:
            raise LabbookError(f"the tokenizer cannot read the token ids of `prompt`: {error}") from None


def load(name: str) -> TokenizerRenderer:
    """A tokenizer from a folder, or by a name from the local cache; nothing is downloaded.

    Raises UsageError when there is none, LabbookError when `transformers` is missing.
    """
    folder = Path(name)
    if name.startswith(("/", ".", "~")) and not folder.is_dir():
        raise UsageError(f"there is no folder {name}: name the folder of a model, or a name from the local cache")
    if folder.exists() and not (folder / "tokenizer.json").is_file():
        raise UsageError(f"{name} has no tokenizer.json: name the folder of a model in Hugging Face layout")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # else: a line on stderr that PyTorch is absent
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise LabbookError(
            "--tokenizer needs the package transformers: install it, or let a server tokenize with --base-url"
        ) from None
    try:
        return TokenizerRenderer(_Transformers(AutoTokenizer.from_pretrained(name, local_files_only=True)))
    except Exception as error:  # many types for a damaged or missing file
        said = " ".join(str(error).split())[:200]
        raise UsageError(f"no tokenizer can be read at {name!r} (nothing is downloaded): {said}") from None


class _Transformers:
    """Transformers' tokenizer behind the three methods."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        tokenizer.model_max_length = sys.maxsize  # the length is no concern here, and would only be warned about

    def render_chat(
        self,
        messages: Sequence[Any],
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        **more: Any,
    ) -> str:
        text: str = self._tokenizer.apply_chat_template(
            list(messages), tools=tools, add_generation_prompt=add_generation_prompt, tokenize=False, **more
        )
        return text

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return text


def _template_message(message: dict[str, Any]) -> dict[str, Any]:
    """As servers hand it to a template: text for parts, objects for the arguments of calls, no nulls."""
    given = {name: value for name, value in message.items() if value is not None}
    given["content"] = content_text(given.get("content"))
    if given.get("role") == "developer":
        given["role"] = "system"
    if isinstance(given.get("tool_calls"), list):
        given["tool_calls"] = list(map(_call_with_object, given["tool_calls"]))
    return given


def _call_with_object(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    with contextlib.suppress(ValueError, RecursionError):
        if (
            isinstance(arguments, str)
            and isinstance(parsed := json.loads(arguments), dict)
            and isinstance(function, dict)
        ):
            return {**call, "function": {**function, "arguments": parsed}}
    return call
