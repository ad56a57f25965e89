"""One request: what was asked, how far it has come, what it hands back, and what it measured about itself."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minivllm.config import SamplingParams


class RequestError(ValueError):
    """A request that cannot be served as asked. `code` and `param` are what an OpenAI-shaped error carries."""

    code = "invalid_request"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextLengthExceededError(RequestError):
    """The request needs more tokens than the model's context or the page pool can ever hold."""

    code = "context_length_exceeded"


class InvalidTokenError(RequestError):
    """A token id outside the vocabulary: the arrays behind it would answer with other memory (known fault SV-06)."""

    code = "invalid_token_id"


class CacheBusyError(RuntimeError):
    """The prefix cache cannot be reset while requests run."""


class UnknownRequestError(KeyError):
    """A request id that this engine does not know, or has forgotten because the request ended."""


class Status(enum.Enum):
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Natural log probabilities of one token and of its best alternatives, from unscaled logits."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """One line of a request's timeline. `at_s` is seconds since the request arrived."""

    at_s: float
    name: str
    tokens: int = 0


@dataclass(slots=True)
class RequestMetrics:
    """Counts are tokens. Times are seconds since arrival, None until they are known."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    published_tokens: int = 0
    output_tokens: int = 0
    queue_s: float | None = None
    prefill_s: float | None = None
    ttft_s: float | None = None
    decode_s: float | None = None
    e2e_s: float | None = None
    events: list[RequestEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What a request has produced so far. `new_token_ids` and `new_text` are what its previous output did not have.

    `finish_reason` is None while the request runs, then "stop", "length", "abort" or "error" (with `error` saying why).
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    text: str
    new_token_ids: tuple[int, ...]
    new_text: str
    finish_reason: str | None
    stop_reason: str | int | None
    error: str | None
    logprobs: list[TokenLogprobs] | None
    prompt_logprobs: list[TokenLogprobs | None] | None
    metrics: RequestMetrics


class Request:
    """State of one request. In a step the scheduler, the manager and the engine change it, in this order.

    `num_computed_tokens` counts the tokens whose KV is in pages, restored ones included; what this request computed
    itself is `metrics.computed_tokens`. `num_published_pages` counts leading pages that can be found, restored ones
    included; what it made findable itself is `metrics.published_tokens`.

    token_ids    [ prompt ........................ | generated ... ]
    computed     [ restored | computed ......... ]   KV is in the pages of `page_table`
                                                ^ num_computed_tokens
    """

    def __init__(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int],
        params: SamplingParams,
        cache_salt: str | None,
        arrived_at: float,
    ) -> None:
        self.request_id = request_id
        self.params = params
        self.cache_salt = cache_salt
        self.arrived_at = arrived_at
        self.arrival_number = 0
        self.token_ids = list(prompt_token_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.num_prefill_tokens = self.num_prompt_tokens
        """Tokens to compute before the next one can be sampled: after a preemption the answer so far is among them."""
        self.num_computed_tokens = 0
        self.num_seen_tokens = 0
        """Tokens that have had KV at some time: what is computed again after a preemption is counted apart."""
        self.num_preemptions = 0
        self.page_table: list[int] = []
        self.num_published_pages = 0
        self.publication_stopped = False
        self.may_read_cache = True
        self.is_counted = True
        """False for what is no request of anybody: taking in a file changes no counter of lookups or publications."""
        self.id_slot: int | None = None
        """The slot it must run in; None: any, or none."""
        self.all_logits = False
        self.status = Status.WAITING
        self.finish_reason: str | None = None
        self.stop_reason: str | int | None = None
        self.error: str | None = None
        self.logprobs: list[TokenLogprobs] | None = None if params.logprobs is None else []
        self.prompt_logprobs: list[TokenLogprobs | None] | None = None if params.prompt_logprobs is None else [None]
        self.metrics = RequestMetrics(prompt_tokens=self.num_prompt_tokens)

    def __repr__(self) -> str:
        progress = f"{self.num_computed_tokens} of {len(self.token_ids)} tokens computed"
        return f"Request({self.request_id!r}, {progress}, {self.status.value})"

    @property
    def prompt_token_ids(self) -> list[int]:
        return self.token_ids[: self.num_prompt_tokens]

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def num_uncomputed_tokens(self) -> int:
        return len(self.token_ids) - self.num_computed_tokens

    @property
    def is_prefilling(self) -> bool:
        return self.num_computed_tokens < self.num_prefill_tokens

    @property
    def max_kv_tokens(self) -> int:
        """Tokens whose KV this request can come to hold: the last sampled token never gets KV."""
        return self.num_prompt_tokens + self.params.max_tokens - 1

    @property
    def reads_prefix_cache(self) -> bool:
        """False when asked not to, and for prompt log probabilities: tokens that are skipped have no logits."""
        return self.may_read_cache and self.params.prompt_logprobs is None

    @property
    def wants_all_logits(self) -> bool:
        return self.all_logits or (self.params.prompt_logprobs is not None and self.is_prefilling)

    def record(self, name: str, now: float, tokens: int = 0) -> None:
        self.metrics.events.append(RequestEvent(now - self.arrived_at, name, tokens))

    def preempt(self, now: float) -> None:
        """Back to waiting, without KV, with everything it has said."""
        self.status = Status.WAITING
        self.num_computed_tokens = self.num_published_pages = 0
        self.publication_stopped = False
        self.num_prefill_tokens = len(self.token_ids)
        self.num_preemptions += 1
        self.record("preempted", now, len(self.token_ids))

    def end(self, reason: str, now: float, stop_reason: Any = None, error: str | None = None) -> None:
        self.status = Status.ENDED
        self.finish_reason = reason
        self.stop_reason = stop_reason
        self.error = error
        self.metrics.e2e_s = now - self.arrived_at
        self.record(f"ended:{reason}", now, len(self.token_ids))


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What can ever be served. Plain numbers, so that any thread may check a request before the engine sees it."""

    vocab_size: int
    max_model_len: int
    pool_tokens: int

    def check(self, prompt_token_ids: Sequence[int], params: SamplingParams) -> None:
        """Raise `RequestError` when this request could never run; a request that passes needs only patience."""
        if len(prompt_token_ids) == 0:
            raise RequestError("the prompt has no tokens: give at least one", param="prompt")
        for token_id in prompt_token_ids:
            self._check_token(token_id, "prompt")
        for token_id in params.stop_ids:
            self._check_token(token_id, "stop_token_ids")
        self._check_length(len(prompt_token_ids), params.max_tokens)

    def max_tokens_after(self, num_prompt_tokens: int) -> int:
        """The longest answer that fits behind a prompt of this length; below 1 when nothing fits."""
        return min(self.max_model_len, self.pool_tokens) - num_prompt_tokens + 1

    def _check_token(self, token_id: Any, param: str) -> None:
        if isinstance(token_id, bool) or not isinstance(token_id, int):
            raise InvalidTokenError(f"{token_id!r} is not a token id: token ids are whole numbers", param=param)
        if not 0 <= token_id < self.vocab_size:
            raise InvalidTokenError(
                f"token id {token_id} is outside the vocabulary of 0 to {self.vocab_size - 1}", param=param
            )

    def _check_length(self, num_prompt_tokens: int, max_tokens: int) -> None:
        kv_tokens = num_prompt_tokens + max_tokens - 1
        asked = f"{num_prompt_tokens} prompt tokens and max_tokens {max_tokens} need KV for {kv_tokens} tokens"
        if kv_tokens > self.max_model_len:
            raise ContextLengthExceededError(
                f"{asked}; the context holds {self.max_model_len} tokens: shorten the prompt or lower max_tokens",
                param="prompt",
            )
        if kv_tokens > self.pool_tokens:
            raise ContextLengthExceededError(
                f"{asked}; the page pool holds {self.pool_tokens} tokens: "
                "shorten the prompt, lower max_tokens or enlarge the pool",
                param="prompt",
            )
