"""llama-server (llama.cpp).

Captured from build 11434: answer and stream with `usage` and `timings`, the error bodies, /props, /slots, /tokenize,
/health, and the metrics page, whose `prompt_tokens_total` counts computed tokens only; 379 of 380 tokens of an equal
prompt are reused, so matching goes token by token. Documented: the flags and their defaults, /apply-template,
/detokenize, and sequences that lost their slot kept in memory (`--cache-ram`). From the sources: 501 for what was not
switched on, four slots where no number is given. Measured: requests that come together each compute their prompt.
Left out: slots on disk, so POST /slots answers as without `--slot-save-path`; the context is not divided among slots.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from labs.kit.doubles import llama_pages
from labs.kit.doubles.dialect import Dialect, plain_usage
from labs.kit.doubles.memory import Memory, Slots
from labs.kit.doubles.replying import Counts, Replying
from labs.kit.doubles.response import Response, compact, event, json_response, text_response
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine

BUILD = "b11434-double"
AUTO_SLOTS = 4
TOKENS_PER_MIB = 1024
"""Of `tiny`: 2 layers, keys and values, 2 heads of 32 numbers of 4 bytes make 1 KiB a token."""


class LlamaServer(Dialect):
    name = "llama-server"
    version = BUILD
    server_header = "llama.cpp"
    page_size = 1
    default_temperature = 0.8

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cache-prompt", action=argparse.BooleanOptionalAction, default=True)
        parser.add_argument("--parallel", "-np", type=int, default=-1)
        parser.add_argument("--cache-ram", "-cram", type=int, default=8192, metavar="MIB")
        parser.add_argument("--slot-prompt-similarity", "-sps", type=float, default=0.1)
        parser.add_argument("--metrics", action="store_true")
        parser.add_argument("--slots", action=argparse.BooleanOptionalAction, default=True)

    @property
    def has_cache(self) -> bool:
        return bool(self.flags.cache_prompt)

    def own_memory(self) -> Memory:
        num_slots = AUTO_SLOTS if self.flags.parallel < 1 else self.flags.parallel
        kept_tokens = self.pool_tokens if self.flags.cache_ram < 0 else self.flags.cache_ram * TOKENS_PER_MIB
        return Slots(num_slots, self.flags.slot_prompt_similarity, kept_tokens)

    def whole(self, replying: Replying) -> Response:
        text, finish_reason = replying.finish()
        choice = {"finish_reason": finish_reason, "index": 0, "message": self.message(text)}
        return json_response(self._envelope(replying, "chat.completion", choice) | self._told(replying))

    def events(self, replying: Replying) -> Iterator[str]:
        def chunk(*deltas: dict[str, Any], reason: str | None = None, **more: Any) -> str:
            choices = [{"finish_reason": reason, "index": 0, "delta": delta} for delta in deltas]
            return event(compact(self._envelope(replying, "chat.completion.chunk", *choices) | more))

        reason = None
        for piece in replying.pieces():
            if piece.is_first:
                yield chunk({"role": "assistant", "content": None})
            if piece.text:
                yield chunk(self.text_field(piece.text))
            reason = piece.finish_reason
        if not replying.asked.include_usage:
            timings = self._told(replying).get("timings")
            yield chunk({}, reason=reason, **({"timings": timings} if timings else {}))
        else:
            yield chunk({}, reason=reason)
            if replying.has_usage:
                yield chunk(**self._told(replying))
        yield event("[DONE]")

    def error(self, status: int, message: str, kind: str = "invalid_request_error") -> Response:
        return json_response({"error": {"code": status, "message": message, "type": kind}}, status)

    def unauthorized(self) -> Response:
        return self.error(401, "Invalid API Key", "authentication_error")

    def unknown_route(self, path: str) -> Response:
        return json_response({"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}, 404)

    def unknown_model(self, name: str) -> Response:
        return self.error(404, f"model '{name}' not found")  # never asked: any name is served by the one model

    def bad_json(self, message: str, line: int, column: int) -> Response:
        where = f"parse error at line {line}, column {column}"
        return self.error(400, f"[json.exception.parse_error.101] {where}: syntax error while parsing ({message})")

    def metrics(self, tally: Tally) -> Response:
        if not self.flags.metrics:
            return self._not_switched_on("metrics endpoint", "--metrics")
        return text_response(llama_pages.metrics_page(tally), content_type="text/plain; version=0.0.4")

    def side_route(self, method: str, path: str, body: dict[str, Any], engine: TinyEngine) -> Response | None:
        match method, path:
            case "GET", "/health" | "/v1/health":
                return json_response({"status": "ok"})
            case "GET", "/v1/models" | "/models":
                card = {"id": self.model, "object": "model", "created": 0, "owned_by": "llamacpp"}
                meta = {"n_ctx_train": engine.facts.max_model_len, "n_vocab": engine.facts.limits.vocab_size}
                return json_response({"object": "list", "data": [card | {"meta": meta}]})
            case "GET", "/props":
                return json_response(llama_pages.props(self.model, engine, self._slots(engine), BUILD, self.flags))
            case "GET", "/slots":
                if not self.flags.slots:
                    return self._not_switched_on("slots endpoint", "--slots")
                return json_response(llama_pages.slots(self._slots(engine), engine))
            case "POST", "/tokenize":  # messages are not known here: without content there are no tokens
                content, add_special = str(body.get("content", "")), bool(body.get("add_special", False))
                return json_response({"tokens": engine.encode(content, add_special) if content else []})
            case "POST", "/detokenize":
                return json_response({"content": engine.decode(body.get("tokens") or [])})
            case "POST", "/apply-template":
                return json_response({"prompt": engine.render(body.get("messages") or [])})
        if method == "POST" and path.startswith("/slots/"):
            return self._not_switched_on("slots action", "--slot-save-path")
        return None

    @staticmethod
    def _slots(engine: TinyEngine) -> Slots:
        assert isinstance(engine.memory, Slots)
        return engine.memory

    def _not_switched_on(self, what: str, flag: str) -> Response:
        message = f"This server does not support {what}. Start it with `{flag}`"
        return self.error(501, message, "not_supported_error")

    def _envelope(self, replying: Replying, kind: str, *choices: dict[str, Any]) -> dict[str, Any]:
        head = {"choices": list(choices), "created": replying.created_s, "id": f"chatcmpl-{replying.id}"}
        return head | {"model": self.model, "system_fingerprint": BUILD, "object": kind}

    def _told(self, replying: Replying) -> dict[str, Any]:
        if not replying.has_usage:
            return {}
        counts = replying.counts
        if counts.cached_tokens is None:
            return {"usage": plain_usage(counts)}
        details = {"prompt_tokens_details": {"cached_tokens": counts.cached_tokens}}
        return {"usage": plain_usage(counts) | details, "timings": timings(counts)}


def timings(counts: Counts) -> dict[str, float | int | None]:
    """llama-server's own times, in milliseconds and tokens per second. The first token falls out of the prompt."""
    prompt_ms, predicted_ms = counts.prompt_s * 1000, counts.decode_s * 1000
    num_decoded = counts.completion_tokens - 1
    return {
        "cache_n": counts.cached_tokens,
        "prompt_n": counts.computed_tokens,
        "prompt_ms": round(prompt_ms, 3),
        "prompt_per_token_ms": _ratio(prompt_ms, counts.computed_tokens),
        "prompt_per_second": _ratio(counts.computed_tokens, counts.prompt_s),
        "predicted_n": counts.completion_tokens,
        "predicted_ms": round(predicted_ms, 3),
        "predicted_per_token_ms": _ratio(predicted_ms, num_decoded),
        "predicted_per_second": _ratio(num_decoded, counts.decode_s),
    }


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None
