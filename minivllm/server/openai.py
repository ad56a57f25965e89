"""What a client may ask, as OpenAI and vLLM name it. Token ids and lengths are the limits' part."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

TEMPLATE_ARGUMENTS_REFUSED = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "conversation",
        "max_length",
        "messages",
        "padding",
        "return_dict",
        "return_tensors",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
    }
)
"""What the server itself tells the template's renderer; everything else is a variable of the template."""


def _check_stop(value: Any) -> tuple[str, ...]:
    strings = (value,) if isinstance(value, str) else value
    if not isinstance(strings, (list, tuple)) or not all(isinstance(text, str) and text for text in strings):
        raise ValueError(f"{value!r:.80} is not a string of at least one character, or a list of such strings")
    return tuple(strings)


def _check_prompt(value: Any) -> str | list[Any]:
    """A string or a list of token ids; a list of exactly one prompt is that prompt."""
    if isinstance(value, list) and value and isinstance(value[0], (str, list)):
        if len(value) > 1:
            raise ValueError(f"a list of {len(value)} prompts is not supported: send one request per prompt")
        value = value[0]
    if not isinstance(value, (str, list)):
        raise ValueError(f"{value!r:.80} is not a string or a list of token ids")
    if not value:
        raise ValueError("the prompt is empty: give at least one character or one token id")
    return value


def _check_content(value: Any) -> str:
    """A string, or text parts joined by line ends (as vLLM joins them for templates that take strings)."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.80} is not a string or a list of text parts")
    return "\n".join(_text_of(part) for part in value)


def _text_of(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in ("text", "input_text", "output_text"):
        raise ValueError(f"a content part of type {kind!r} is not supported: this model reads text parts only")
    if not isinstance(part.get("text"), str):
        raise ValueError("a text part needs a string in its field 'text'")
    return str(part["text"])


def _drop_nulls(value: Any) -> Any:
    """A message that an earlier answer contained may be sent back as it came, null fields included."""
    return {name: field for name, field in value.items() if field is not None} if isinstance(value, dict) else value


def _check_template_arguments(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.80} is not an object")
    taken = sorted(TEMPLATE_ARGUMENTS_REFUSED & value.keys())
    if taken:
        raise ValueError(f"{taken[0]!r} cannot be set here: the server decides it")
    return value


class Strict(BaseModel):
    """No field is ignored and no value is converted: "7", 7.0 and true are not the number 7."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class Message(Strict):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[str, BeforeValidator(_check_content)] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    annotations: list[Any] | None = None


class StreamOptions(Strict):
    include_usage: bool = False
    include_obfuscation: bool = False
    continuous_usage_stats: Literal[False] = False


class Sampling(Strict):
    """What both kinds of completion take."""

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    stop: Annotated[tuple[str, ...], BeforeValidator(_check_stop)] = ()
    stop_token_ids: list[Any] = Field(default_factory=list)
    ignore_eos: bool = False
    max_tokens: int | None = None
    cache_salt: Annotated[str, Field(min_length=1)] | None = None
    id_slot: int | None = None
    cache_prompt: bool = True

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class ChatPrompt(Strict):
    messages: Annotated[list[Annotated[Message, BeforeValidator(_drop_nulls)]], Field(min_length=1)]
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: Annotated[dict[str, Any], BeforeValidator(_check_template_arguments)] = Field(
        default_factory=dict
    )


class ChatCompletion(ChatPrompt, Sampling):
    max_completion_tokens: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    tool_choice: Any = "auto"


class Completion(Sampling):
    prompt: Annotated[str | list[Any], BeforeValidator(_check_prompt)]
    echo: bool = False
    logprobs: int | None = None
    add_special_tokens: bool = True


class TokenizeText(Strict):
    prompt: str
    model: str | None = None
    add_special_tokens: bool = True
    return_token_strs: bool = False


class TokenizeChat(ChatPrompt):
    model: str | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool = False


class Detokenize(Strict):
    tokens: list[Any]
    model: str | None = None


class SlotFile(Strict):
    """The name is judged where it is resolved. The salt of a saved sequence is in no file: it must be told again."""

    filename: Any
    cache_salt: Annotated[str, Field(min_length=1)] | None = None


class ResetPrefixCache(Strict):
    cache_salt: Annotated[str, Field(min_length=1)] | None = None
