"""SGLang's OpenAI server, from its documentation and published sources of 2026; nothing here is captured.

Documented: pages of one token (`--page-size`), the radix cache (`--disable-radix-cache`), /metrics only with
`--enable-metrics`, and `sglang:cached_tokens_total` by `cache_source`, which has no sample until something was reused.
In usage, `prompt_tokens_details` needs `--enable-cache-report`, and is null, not 0, when nothing was reused. At its
start the server answers a short prompt of its own (`--skip-server-warmup`). Not verified: which prompt that is, and
how requests that come together share a prefix.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from labs.kit.doubles.dialect import POOL_TOKENS, Dialect, plain_usage, positive
from labs.kit.doubles.exposition import family, page, sample
from labs.kit.doubles.replying import Counts, Replying
from labs.kit.doubles.response import Response, compact, event, json_response, text_response
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine
from labs.kit.doubles.vllm import tokenized
from minivllm.config import SamplingParams

WARM_UP_PROMPT = "The capital city of France is"


class SgLang(Dialect):
    name = "sglang"
    version = "documented 2026-11"
    server_header = "uvicorn"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--disable-radix-cache", action="store_true")
        parser.add_argument("--enable-metrics", action="store_true")
        parser.add_argument("--enable-cache-report", action="store_true")
        parser.add_argument("--page-size", type=positive, default=1)
        parser.add_argument("--max-total-tokens", type=positive, default=None)
        parser.add_argument("--skip-server-warmup", action="store_true")

    @property
    def page_size(self) -> int:  # type: ignore[override]
        return int(self.flags.page_size)

    @property
    def has_cache(self) -> bool:
        return not self.flags.disable_radix_cache

    @property
    def pool_tokens(self) -> int:
        return self.flags.max_total_tokens or POOL_TOKENS

    def warm_up(self, engine: TinyEngine, tally: Tally) -> None:
        if self.flags.skip_server_warmup:
            return
        token_ids = engine.encode(WARM_UP_PROMPT, add_special_tokens=True)
        *_, final = engine.run(token_ids, SamplingParams(max_tokens=8, temperature=0.0), None)
        tally.add(
            queried_tokens=len(token_ids),
            hit_tokens=0,
            prompt_tokens=len(token_ids),
            generated_tokens=len(final.token_ids),
            prompt_s=final.metrics.prefill_s or 0.0,
            decode_s=final.metrics.decode_s or 0.0,
        )

    def whole(self, replying: Replying) -> Response:
        text, finish_reason = replying.finish()
        choice = {
            "index": 0,
            "message": {"content": None, "reasoning_content": None, **self.message(text), "tool_calls": None},
            "logprobs": None,
            "finish_reason": finish_reason,
            "matched_stop": replying.final.stop_reason,
        }
        usage = self._usage(replying.counts) if replying.has_usage else None
        return json_response(self._envelope(replying, "chat.completion", choice) | {"usage": usage, "metadata": None})

    def events(self, replying: Replying) -> Iterator[str]:
        def chunk(*choices: dict[str, Any], usage: dict[str, Any] | None = None) -> str:
            return event(compact(self._envelope(replying, "chat.completion.chunk", *choices) | {"usage": usage}))

        def choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
            silent = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
            ended = {"finish_reason": finish_reason, "matched_stop": replying.final.stop_reason}
            return {"index": 0, "delta": silent | delta, "logprobs": None, **ended}

        reason = None
        for piece in replying.pieces():
            if piece.is_first:
                yield chunk(choice({"role": "assistant", "content": ""}))
            if piece.text:
                yield chunk(choice(self.text_field(piece.text)))
            reason = piece.finish_reason
        yield chunk(choice({}, reason))
        if replying.asked.include_usage and replying.has_usage:
            yield chunk(usage=self._usage(replying.counts))
        yield event("[DONE]")

    def error(self, status: int, message: str) -> Response:
        error = {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
        return json_response(error, status)

    def unauthorized(self) -> Response:
        return json_response({"error": "Unauthorized"}, 401)

    def unknown_route(self, path: str) -> Response:
        return json_response({"detail": "Not Found"}, 404)

    def unknown_model(self, name: str) -> Response:
        return self.error(404, f"Model '{name}' not found")  # never asked: any name is served by the one model

    def bad_json(self, message: str, line: int, column: int) -> Response:
        return self.error(400, f"JSON decode error: {message}: line {line} column {column}")

    def metrics(self, tally: Tally) -> Response:
        if not self.flags.enable_metrics:
            return self.unknown_route("/metrics")
        return text_response(self._page(tally), content_type="text/plain; version=0.0.4; charset=utf-8")

    def side_route(self, method: str, path: str, body: dict[str, Any], engine: TinyEngine) -> Response | None:
        match method, path:
            case "GET", "/health":
                return text_response("")
            case "GET", "/v1/models":
                card = {"id": self.model, "object": "model", "created": 0, "owned_by": "sglang", "root": self.model}
                data = [card | {"parent": None, "max_model_len": engine.facts.max_model_len}]
                return json_response({"object": "list", "data": data})
            case "POST", "/tokenize":
                ids = tokenized(body, engine)
                return json_response({"tokens": ids, "count": len(ids), "max_model_len": engine.facts.max_model_len})
            case "POST", "/detokenize":
                return json_response({"text": engine.decode(body.get("tokens") or [])})
            case "POST", "/flush_cache":
                return text_response("Cache flushed.") if engine.flush() else self.error(400, "Flush cache failed")
        return None

    def _envelope(self, replying: Replying, kind: str, *choices: dict[str, Any]) -> dict[str, Any]:
        head = {"id": replying.id, "object": kind, "created": replying.created_s}
        return head | {"model": replying.asked.model or self.model, "choices": list(choices)}

    def _usage(self, counts: Counts) -> dict[str, Any]:
        is_told = self.flags.enable_cache_report and counts.cached_tokens
        details = {"cached_tokens": counts.cached_tokens} if is_told else None
        return plain_usage(counts) | {"prompt_tokens_details": details, "reasoning_tokens": 0}

    def _page(self, tally: Tally) -> str:
        labels = {"model_name": self.model}

        def counter(name: str, value: float, **more: str) -> str:
            return family(name, "counter", sample(name, labels | more, float(value)))

        cached = "sglang:cached_tokens_total"
        pool = {"page_size": str(self.page_size), "num_pages": str(self.pool_tokens // self.page_size)}
        return page(
            counter("sglang:prompt_tokens_total", tally.prompt_tokens),
            counter("sglang:generation_tokens_total", tally.generated_tokens),
            counter(cached, tally.hit_tokens, cache_source="device") if tally.hit_tokens else family(cached, "counter"),
            counter("sglang:num_requests_total", tally.num_requests),
            family("sglang:cache_config_info", "gauge", sample("sglang:cache_config_info", labels | pool, 1.0)),
        )
