"""vLLM's OpenAI server.

Captured from 0.32.0 on CPU: every field of an answer, of its stream and of /tokenize, the error bodies, /version,
/health, and the names and labels of the metrics that speak of the cache (vllm_metrics.py). Documented: the
default block of 16 tokens (the CPU build took 128), details in usage only with `--enable-prompt-tokens-details`,
/v1/models, /detokenize, and that a server without a cache counts no query. Measured: requests that come together
compute a shared prefix once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from labs.kit.doubles.dialect import POOL_TOKENS, Dialect, plain_usage, positive
from labs.kit.doubles.replying import Counts, Replying
from labs.kit.doubles.response import Response, compact, event, json_response, text_response
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine
from labs.kit.doubles.vllm_metrics import metrics_page

VERSION = "0.32.0"
NULL_IN_WHOLE = (
    "prompt_logprobs",
    "prompt_token_ids",
    "prompt_text",
    "kv_transfer_params",
    "ec_transfer_params",
    "metrics",
)


class Vllm(Dialect):
    name = "vllm"
    version = VERSION
    server_header = "uvicorn"
    reasoning_field = "reasoning"
    serves_only_its_model = True
    single_flight = "page"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
        parser.add_argument("--enable-prompt-tokens-details", action="store_true")
        parser.add_argument("--block-size", type=positive, default=16)
        parser.add_argument("--num-gpu-blocks-override", type=positive, default=None)

    @property
    def page_size(self) -> int:  # type: ignore[override]
        return int(self.flags.block_size)

    @property
    def has_cache(self) -> bool:
        return bool(self.flags.enable_prefix_caching)

    @property
    def pool_tokens(self) -> int:
        blocks = self.flags.num_gpu_blocks_override
        return POOL_TOKENS if blocks is None else blocks * self.page_size

    def whole(self, replying: Replying) -> Response:
        text, finish_reason = replying.finish()
        nothing = {"refusal": None, "annotations": None, "audio": None, "function_call": None, "reasoning": None}
        choice = {
            "index": 0,
            "message": {**nothing, **self.message(text)},
            "logprobs": None,
            "finish_reason": finish_reason,
            "stop_reason": replying.final.stop_reason,
            "token_ids": None,
            "routed_experts": None,
        }
        body = self._envelope(replying, "chat.completion", choice)
        body |= {"service_tier": None, "system_fingerprint": self._fingerprint}
        if replying.has_usage:
            body["usage"] = {
                "prompt_tokens_details": None,
                **self._usage(replying.counts, multimodal_tokens=None),
                "completion_tokens_details": None,
            }
        return json_response(body | dict.fromkeys(NULL_IN_WHOLE))

    def events(self, replying: Replying) -> Iterator[str]:
        for piece in replying.pieces():
            if piece.is_first:
                role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
                opening = self._chunk(replying, {**role, "finish_reason": None})
                yield event(compact(opening | {"prompt_token_ids": None, "prompt_text": None}))
            choice: dict[str, Any] = {"index": 0, "delta": self.text_field(piece.text), "logprobs": None}
            choice["finish_reason"] = piece.finish_reason
            if piece.finish_reason is not None:
                choice["stop_reason"] = replying.final.stop_reason
            yield event(compact(self._chunk(replying, choice | {"token_ids": None})))
        if replying.asked.include_usage and replying.has_usage:
            body = self._chunk(replying) | {"usage": self._usage(replying.counts)}
            yield event(compact(body | {"system_fingerprint": self._fingerprint}))
        yield event("[DONE]")

    def error(self, status: int, message: str, param: str | None = None, kind: str = "BadRequestError") -> Response:
        return json_response({"error": {"message": message, "type": kind, "param": param, "code": status}}, status)

    def unauthorized(self) -> Response:
        return json_response({"error": "Unauthorized"}, 401)

    def unknown_route(self, path: str) -> Response:
        return json_response({"detail": "Not Found"}, 404)

    def unknown_model(self, name: str) -> Response:
        message = f"The model `{name}` does not exist. Valid aliases: {self.model}."
        return self.error(404, message, "model", "NotFoundError")

    def bad_json(self, message: str, line: int, column: int) -> Response:
        where = f"body.{column - 1}"
        fault = {"type": "json_invalid", "loc": where, "msg": "JSON decode error", "input": "<dict of 0 items>"}
        return self.error(400, f"1 validation error:\n  {fault | {'ctx': {'error': message}}}", where, "Bad Request")

    def metrics(self, tally: Tally) -> Response:
        text = metrics_page(tally, self.model, self.page_size, self.pool_tokens, has_cache=self.tells_cache)
        return text_response(text, content_type="text/plain; version=0.0.4; charset=utf-8")

    def side_route(self, method: str, path: str, body: dict[str, Any], engine: TinyEngine) -> Response | None:
        match method, path:
            case "GET", "/health":
                return text_response("")
            case "GET", "/version":
                return json_response({"version": VERSION})
            case "GET", "/v1/models":
                return json_response({"object": "list", "data": [self._model_card(engine)]})
            case "POST", "/tokenize":
                token_ids = tokenized(body, engine)
                told = {"count": len(token_ids), "max_model_len": engine.facts.max_model_len, "tokens": token_ids}
                return json_response(told | {"token_strs": None})
            case "POST", "/detokenize":
                return json_response({"prompt": engine.decode(body.get("tokens") or [])})
        return None

    @property
    def _fingerprint(self) -> str:
        return f"vllm-{VERSION}-double"

    def _model_card(self, engine: TinyEngine) -> dict[str, Any]:
        card = {"id": self.model, "object": "model", "created": 0, "owned_by": "vllm", "root": self.model}
        return card | {"parent": None, "max_model_len": engine.facts.max_model_len}

    def _envelope(self, replying: Replying, kind: str, *choices: dict[str, Any]) -> dict[str, Any]:
        head = {"id": f"chatcmpl-{replying.id[:16]}", "object": kind, "created": replying.created_s}
        return head | {"model": self.model, "choices": list(choices)}

    def _chunk(self, replying: Replying, *choices: dict[str, Any]) -> dict[str, Any]:
        return self._envelope(replying, "chat.completion.chunk", *choices)

    def _usage(self, counts: Counts, **more: None) -> dict[str, Any]:
        """A stream leaves out what a whole answer has as null."""
        if not self.flags.enable_prompt_tokens_details or counts.cached_tokens is None:
            return plain_usage(counts)
        whole_blocks = counts.prompt_tokens // self.page_size * self.page_size
        created = max(0, whole_blocks - counts.cached_tokens) if self.tells_cache else 0
        details = {"cached_tokens": counts.cached_tokens, "created_cache_tokens": created, **more}
        return plain_usage(counts) | {"prompt_tokens_details": details}


def tokenized(body: dict[str, Any], engine: TinyEngine) -> list[int]:
    """The token ids of a `prompt`, or of `messages` in the chat template, as vLLM and SGLang take them."""
    if "messages" in body:
        return engine.encode(engine.render(body["messages"]))
    return engine.encode(str(body.get("prompt", "")), add_special_tokens=bool(body.get("add_special_tokens", True)))
