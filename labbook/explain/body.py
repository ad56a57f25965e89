"""A request body as `explain` sees it: what of it becomes prompt, and the JSON path of every piece."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from labbook.errors import LabbookError, UsageError
from labbook.places import check_regular

# Besides the prompt: where one of these differs, no page is shared, however equal the prompts are.
_IDENTITY_FIELDS = ("model", "cache_salt", "lora", "lora_name")
_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True)
class Leaf:
    """One text of a body: its JSON path, such as `messages[0].content`, and the index of its message."""

    path: str
    text: str
    message: int | None = None


@dataclass(frozen=True)
class Body:
    """A chat or completion request. `value` is the JSON object as it was sent."""

    value: Mapping[str, Any]

    def __post_init__(self) -> None:
        _check(self.value)

    @property
    def is_chat(self) -> bool:
        return "messages" in self.value

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.value.get("messages") or [])

    @property
    def tools(self) -> list[Any]:
        return list(self.value.get("tools") or [])

    @property
    def template_arguments(self) -> dict[str, Any]:
        """What else reaches the chat template."""
        named = dict(self.value.get("chat_template_kwargs") or {})
        return {**({"documents": self.value["documents"]} if self.value.get("documents") else {}), **named}

    @property
    def prompt_ids(self) -> list[int] | None:
        """The token ids of a completion that gives ids; None for text."""
        prompt = _only(self.value.get("prompt"))
        return prompt if isinstance(prompt, list) else None

    @property
    def prompt_text(self) -> str:
        prompt = _only(self.value.get("prompt"))
        return prompt if isinstance(prompt, str) else ""

    @property
    def has_images(self) -> bool:
        parts = (part for message in self.messages for part in _parts(message))
        return any(isinstance(part, dict) and part.get("type") not in ("text", None) for part in parts)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every text of the messages, or the prompt, in the order in which it was sent."""
        if not self.is_chat:
            return () if self.prompt_ids is not None else (Leaf("prompt", self.prompt_text),)
        return tuple(leaf for index, message in enumerate(self.messages) for leaf in _leaves(index, message))

    def role(self, message: int | None) -> str | None:
        """The role of a message; None for a completion's prompt."""
        return None if message is None else str(self.messages[message].get("role"))

    def text_of(self, message: int | None) -> str:
        """All text content of a message, its parts one under the other; the prompt when there is no message."""
        return self.prompt_text if message is None else content_text(self.messages[message].get("content"))

    def identity(self) -> dict[str, Any]:
        return {name: self.value[name] for name in _IDENTITY_FIELDS if self.value.get(name) is not None}


def content_text(content: Any) -> str:
    """The text of a message's content, given as text or as parts; servers join parts with a line break."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def read_bodies(path: Path) -> list[Body]:
    """The bodies of a file: one JSON object, or one object a line. Raises UsageError that names the line."""
    text = _read_text(path)
    try:
        whole = json.loads(text)
    except ValueError:
        return [_numbered(line, path, number) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    except RecursionError:
        raise UsageError(f"{path} nests too deeply to be a request body") from None
    values = whole if isinstance(whole, list) else [whole]
    return [as_body(value, f"{path}" if len(values) == 1 else f"{path}, body {n}") for n, value in enumerate(values, 1)]


def as_body(value: Any, name: str) -> Body:
    """A body from its JSON value. `name` says in an error whose body it is."""
    if isinstance(value, Body):
        return value
    if isinstance(value, dict) and not {"messages", "prompt"} & set(value) and isinstance(value.get("body"), dict):
        value = value["body"]  # a recorded request
    try:
        return Body(value)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def _read_text(path: Path) -> str:
    try:
        check_regular(path, "the file of request bodies")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte {error.start} cannot be read") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except LabbookError as error:
        raise UsageError(str(error)) from None


def _numbered(line: str, path: Path, number: int) -> Body:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}, line {number} is no JSON: {error}") from None
    return as_body(value, f"{path}, line {number}")


def _check(value: Any) -> None:
    if not isinstance(value, Mapping):
        raise UsageError(f"a request body is a JSON object, not {type(value).__name__}")
    if "messages" in value:
        messages = value["messages"]
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            raise UsageError("`messages` must be a list of at least one object")
        return
    prompt = _only(value.get("prompt"))
    is_ids = isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt)
    if not isinstance(prompt, str) and not is_ids:
        raise UsageError("a request body needs `messages`, or one `prompt` that is text or a list of token ids")


def _only(prompt: Any) -> Any:
    """A batch of one prompt counts as the prompt."""
    is_batch = isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list)
    return prompt[0] if is_batch else prompt


def _parts(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _leaves(index: int, message: dict[str, Any]) -> Iterator[Leaf]:
    at = f"messages[{index}]"
    for name in _REASONING_FIELDS:
        if isinstance(message.get(name), str):
            yield Leaf(f"{at}.{name}", message[name], index)
    if isinstance(message.get("content"), str):
        yield Leaf(f"{at}.content", message["content"], index)
    for number, part in enumerate(_parts(message)):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield Leaf(f"{at}.content[{number}].text", part["text"], index)
    calls = message.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                yield Leaf(f"{at}.tool_calls[{number}].function.{name}", function[name], index)
