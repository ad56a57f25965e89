"""The answer of one request: draws its tokens, decides whether one was the last, and reports what is new."""

from __future__ import annotations

import numpy as np

from minivllm.models.tokenizer import Tokenizer
from minivllm.request import Request, RequestOutput
from minivllm.sampling import Sampler, token_logprobs
from minivllm.stop_text import AnswerText


class Answer:
    def __init__(self, request: Request, tokenizer: Tokenizer) -> None:
        self._request = request
        self._eos_token_ids = tokenizer.eos_token_ids
        self._sampler = Sampler(request.params)
        self._text = AnswerText(tokenizer.stream_decoder(), request.params.stop_strings)
        self._num_reported_tokens = 0
        self._num_reported_characters = 0

    def add_token(self, logits: np.ndarray) -> None:
        """Sample the next token from float32 logits [vocabulary]. A token that stops the answer leaves no text."""
        request = self._request
        token_id = self._sampler.sample(logits)
        if request.logprobs is not None:
            request.logprobs.append(token_logprobs(logits, token_id, request.params.logprobs or 0))
        request.token_ids.append(token_id)
        request.metrics.output_tokens += 1
        if not self._is_stop_token(token_id):
            self._text.add(token_id)

    def end_reason(self) -> tuple[str, str | int | None] | None:
        """(finish reason, stop reason) once the newest token has ended the answer, else None.

        As in vLLM, a stop token that the caller named is a stop reason; the model's own end of text is not.
        """
        token_id = self._request.token_ids[-1]
        if self._is_stop_token(token_id):
            return "stop", token_id if token_id in self._request.params.stop_ids else None
        if self._text.stopped_by is None and self._request.num_output_tokens == self._request.params.max_tokens:
            self._text.finish()  # the rest of a character may complete a stop string
            if self._text.stopped_by is None:
                return "length", None
        return None if self._text.stopped_by is None else ("stop", self._text.stopped_by)

    def finish(self) -> None:
        self._text.finish()

    def report(self) -> RequestOutput:
        """The output so far; what is new counts from the previous report."""
        request, text = self._request, self._text.shown
        token_ids = tuple(request.output_token_ids)
        output = RequestOutput(
            request_id=request.request_id,
            prompt_token_ids=tuple(request.prompt_token_ids),
            token_ids=token_ids,
            text=text,
            new_token_ids=token_ids[self._num_reported_tokens :],
            new_text=text[self._num_reported_characters :],
            finish_reason=request.finish_reason,
            stop_reason=request.stop_reason,
            error=request.error,
            logprobs=request.logprobs,
            prompt_logprobs=request.prompt_logprobs,
            metrics=request.metrics,
        )
        self._num_reported_tokens, self._num_reported_characters = len(token_ids), len(text)
        return output

    def _is_stop_token(self, token_id: int) -> bool:
        if token_id in self._request.params.stop_ids:
            return True
        return token_id in self._eos_token_ids and not self._request.params.ignore_eos


def add_prompt_logprobs(request: Request, start: int, logits: np.ndarray) -> None:
    """Row i of `logits` is the distribution behind token `start + i`: it judges the token that follows.

    The first prompt token has no distribution; the last row, which judges the first sampled token, is left out.
    """
    if request.prompt_logprobs is None or start >= request.num_prompt_tokens:
        return
    num_known = max(0, len(request.prompt_logprobs) - (start + 1))  # rows that a preempted request has judged before
    following = request.token_ids[start + 1 + num_known : request.num_prompt_tokens]
    num_alternatives = request.params.prompt_logprobs or 0
    request.prompt_logprobs.extend(
        token_logprobs(row, token_id, num_alternatives)
        for row, token_id in zip(logits[num_known:], following, strict=False)
    )
