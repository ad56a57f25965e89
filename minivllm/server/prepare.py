"""From a parsed request to token ids and sampling parameters: in worker threads, never in the engine's."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from minivllm.config import SamplingParams
from minivllm.request import ContextLengthExceededError, InvalidTokenError, RequestError
from minivllm.server.engine_facts import EngineFacts
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError, invalid_value
from minivllm.server.openai import ChatCompletion, ChatPrompt, Completion, Message, Sampling

COMPLETION_MAX_TOKENS = 16
"""OpenAI's default for `/v1/completions`. A chat without a limit gets whatever fits behind its prompt."""


MAX_TOP_LOGPROBS = 20

ANY_SLOT = -1
"""llama-server's way to leave the choice of a slot to the server."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request the engine can run: it passed every check that needs no array."""

    request_id: str
    token_ids: list[int]
    params: SamplingParams
    cache_salt: str | None
    id_slot: int | None
    use_cache: bool


class Preparer:
    """Renders, tokenizes and checks. Raises `ApiError`, `RequestError` or `ConfigError`."""

    def __init__(self, engine: EngineThread, model_name: str) -> None:
        self._engine = engine
        self._model_name = model_name
        self._tokenizer_lock = threading.Lock()

    @property
    def facts(self) -> EngineFacts:
        if self._engine.facts is None or self._engine.health.state != "ready":
            raise self._engine.gone()
        return self._engine.facts

    def check_model(self, name: str | None) -> None:
        if name is not None and name != self._model_name:
            message = f"the model {name!r} does not exist: this server serves {self._model_name!r}"
            raise ApiError(404, message, code="model_not_found", param="model")

    def chat(self, asked: ChatCompletion) -> Prepared:
        self.check_model(asked.model)
        _check_tool_choice(asked)
        max_tokens = _chat_max_tokens(asked)
        params = _params(asked, max_tokens or 1, _chat_logprobs(asked), None)
        token_ids = self.encode_chat(asked, add_generation_prompt=True, drop_tools=asked.tool_choice == "none")
        if max_tokens is None:
            params = replace(params, max_tokens=max(1, self.facts.limits.max_tokens_after(len(token_ids))))
        return self._prepared("chatcmpl-", token_ids, asked, params)

    def completion(self, asked: Completion) -> Prepared:
        self.check_model(asked.model)
        if asked.max_tokens == 0:
            raise invalid_value("max_tokens=0 must be at least 1: with echo, ask for 1 and ignore it", "max_tokens")
        max_tokens = COMPLETION_MAX_TOKENS if asked.max_tokens is None else asked.max_tokens
        params = _params(asked, max_tokens, asked.logprobs, asked.logprobs if asked.echo else None)
        token_ids = (
            asked.prompt if isinstance(asked.prompt, list) else self.encode(asked.prompt, asked.add_special_tokens)
        )
        return self._prepared("cmpl-", token_ids, asked, params)

    def encode(self, text: str, add_special_tokens: bool = True, param: str = "prompt") -> list[int]:
        """Raises `ContextLengthExceededError`, before it takes the tokenizer from others, if no prompt is that long."""
        facts = self.facts
        _check_text_length(facts, text, param)
        with self._tokenizer_lock:
            return facts.tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        with self._tokenizer_lock:
            return self.facts.tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens)

    def echo_text(self, asked: Completion) -> str:
        """What `echo` puts before the answer: the prompt as it was given, or as its token ids read."""
        return asked.prompt if isinstance(asked.prompt, str) else self.decode(asked.prompt)

    def detokenize(self, token_ids: Sequence[Any]) -> str:
        """Raises `InvalidTokenError` for anything that is not a token id."""
        for token_id in token_ids:
            self._check_token(token_id)
        return self.decode(token_ids)

    def encode_chat(self, asked: ChatPrompt, *, add_generation_prompt: bool, drop_tools: bool = False) -> list[int]:
        tokenizer = self.facts.tokenizer
        if not tokenizer.has_chat_template:
            raise invalid_value(f"{self._model_name!r} has no chat template: use /v1/completions", "messages")
        tools = None if drop_tools else asked.tools or None
        if tools and not tokenizer.supports_tools:
            raise invalid_value(f"the chat template of {self._model_name!r} takes no tools: leave them out", "tools")
        messages = [_template_message(message) for message in asked.messages]
        try:
            text = tokenizer.render_chat(messages, tools, add_generation_prompt, **asked.chat_template_kwargs)
        except Exception as error:  # a template is a program of the model's, and these messages made it fail (SV-07)
            raise ApiError(400, str(error), code="template_refused", param="messages") from error
        return self.encode(text, add_special_tokens=False, param="messages")  # the template writes BOS itself

    def _prepared(self, id_prefix: str, token_ids: list[int], asked: Sampling, params: SamplingParams) -> Prepared:
        self.facts.limits.check(token_ids, params)
        id_slot = None if asked.id_slot == ANY_SLOT else asked.id_slot
        request_id = id_prefix + uuid.uuid4().hex
        return Prepared(request_id, token_ids, params, asked.cache_salt, id_slot, asked.cache_prompt)

    def _check_token(self, token_id: Any) -> None:
        vocab_size = self.facts.limits.vocab_size
        if type(token_id) is not int or not 0 <= token_id < vocab_size:
            raise InvalidTokenError(f"{token_id!r:.80} is not a token id from 0 to {vocab_size - 1}", param="tokens")


def _check_text_length(facts: EngineFacts, text: str, param: str) -> None:
    longest_tokens = facts.limits.max_tokens_after(1)
    longest_chars = longest_tokens * facts.tokenizer.max_chars_per_token
    if len(text) > longest_chars:
        raise ContextLengthExceededError(
            f"{len(text)} characters are more than {longest_tokens} tokens, the longest prompt that fits, "
            f"can stand for ({longest_chars}): shorten the prompt",
            param=param,
        )


def _params(asked: Sampling, max_tokens: int, logprobs: int | None, prompt_logprobs: int | None) -> SamplingParams:
    """Made before anything slow, so that bad ones cost nothing."""
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        seed=asked.seed,
        stop=asked.stop,
        stop_token_ids=asked.stop_token_ids,
        ignore_eos=asked.ignore_eos,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
    )


def _template_message(message: Message) -> dict[str, Any]:
    """As templates expect it: only what was given, and a developer's role by its earlier name."""
    given = message.model_dump(exclude_none=True, exclude={"annotations"})
    if given["role"] == "developer":
        given["role"] = "system"
    if "content" not in given:
        if message.role != "assistant" or not message.tool_calls:
            raise RequestError(f"a message of role {message.role!r} has no content", param="messages")
        given["content"] = ""
    return given


def _check_tool_choice(asked: ChatCompletion) -> None:
    if asked.tool_choice not in ("auto", "none"):
        message = f"tool_choice={asked.tool_choice!r:.80} is not supported: give 'auto' or 'none'"
        raise ApiError(400, message, code="unsupported_parameter", param="tool_choice")


def _chat_max_tokens(asked: ChatCompletion) -> int | None:
    given = {asked.max_tokens, asked.max_completion_tokens} - {None}
    if len(given) > 1:
        both = f"max_tokens={asked.max_tokens} and max_completion_tokens={asked.max_completion_tokens}"
        raise invalid_value(f"{both} differ: give one", "max_completion_tokens")
    max_tokens = given.pop() if given else None
    if max_tokens is not None and max_tokens < 1:
        raise invalid_value(f"max_tokens={max_tokens} must be at least 1", "max_tokens")
    return max_tokens


def _chat_logprobs(asked: ChatCompletion) -> int | None:
    if asked.top_logprobs is not None and not 0 <= asked.top_logprobs <= MAX_TOP_LOGPROBS:
        raise invalid_value(f"top_logprobs={asked.top_logprobs} must lie from 0 to {MAX_TOP_LOGPROBS}", "top_logprobs")
    if asked.logprobs:
        return asked.top_logprobs or 0
    if asked.top_logprobs:
        raise invalid_value(f"top_logprobs={asked.top_logprobs} needs logprobs=true", "top_logprobs")
    return None
