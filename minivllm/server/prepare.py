"""From a parsed request to token ids and sampling parameters: in worker threads, never in the engine's."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minivllm.config import SamplingParams
from minivllm.request import InvalidTokenError, RequestError
from minivllm.server.engine_facts import EngineFacts
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError, invalid_value
from minivllm.server.openai import ChatCompletion, ChatPrompt, Completion, Message, Sampling

COMPLETION_MAX_TOKENS = 16
"""OpenAI's default for `/v1/completions`. A chat without a limit gets whatever fits behind its prompt."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request the engine can run: it passed every check that needs no array."""

    request_id: str
    token_ids: list[int]
    params: SamplingParams
    cache_salt: str | None


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
        token_ids = self.encode_chat(asked, add_generation_prompt=True, drop_tools=asked.tool_choice == "none")
        max_tokens = _chat_max_tokens(asked) or max(1, self.facts.limits.max_tokens_after(len(token_ids)))
        return self._prepared("chatcmpl-", token_ids, asked, max_tokens, _chat_logprobs(asked), None)

    def completion(self, asked: Completion) -> Prepared:
        self.check_model(asked.model)
        if asked.max_tokens == 0:
            raise invalid_value("max_tokens=0 must be at least 1: with echo, ask for 1 and ignore it", "max_tokens")
        token_ids = (
            asked.prompt if isinstance(asked.prompt, list) else self.encode(asked.prompt, asked.add_special_tokens)
        )
        prompt_logprobs = asked.logprobs if asked.echo else None
        max_tokens = COMPLETION_MAX_TOKENS if asked.max_tokens is None else asked.max_tokens
        return self._prepared("cmpl-", token_ids, asked, max_tokens, asked.logprobs, prompt_logprobs)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        with self._tokenizer_lock:
            return self.facts.tokenizer.encode(text, add_special_tokens=add_special_tokens)

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
            with self._tokenizer_lock:
                return tokenizer.encode_chat(
                    messages,
                    tools=tools,
                    add_generation_prompt=add_generation_prompt,
                    **asked.chat_template_kwargs,
                )
        except Exception as error:  # a template is a program of the model's, and these messages made it fail (SV-07)
            raise ApiError(400, str(error), code="template_refused", param="messages") from error

    def _prepared(
        self,
        id_prefix: str,
        token_ids: list[int],
        asked: Sampling,
        max_tokens: int,
        logprobs: int | None,
        prompt_logprobs: int | None,
    ) -> Prepared:
        params = SamplingParams(
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
        self.facts.limits.check(token_ids, params)
        return Prepared(id_prefix + uuid.uuid4().hex, token_ids, params, asked.cache_salt)

    def _check_token(self, token_id: Any) -> None:
        vocab_size = self.facts.limits.vocab_size
        if type(token_id) is not int or not 0 <= token_id < vocab_size:
            raise InvalidTokenError(f"{token_id!r:.80} is not a token id from 0 to {vocab_size - 1}", param="tokens")


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
    if asked.logprobs:
        return asked.top_logprobs or 0
    if asked.top_logprobs:
        raise invalid_value(f"top_logprobs={asked.top_logprobs} needs logprobs=true", "top_logprobs")
    return None
