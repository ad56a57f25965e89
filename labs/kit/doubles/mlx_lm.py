"""mlx_lm.server.

Captured from 0.32.2: answer and stream with the role in every chunk, `: keepalive` comments while the prompt is
computed, cached tokens in usage always, 379 of 380 tokens of an equal prompt reused, bare "Not Found" where there is
no such address (/metrics among them), and errors as `{"error": "..."}`. From the same version's sources: HTTP/1.0, the
headers, `--prompt-cache-size` (how many sequences are remembered; 0 turns the cache off), any other model name
being looked for on the hub. Measured: requests that come together each compute their prompt.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from labs.kit.doubles.dialect import Dialect, plain_usage
from labs.kit.doubles.memory import Memory, Recent
from labs.kit.doubles.replying import Counts, Replying
from labs.kit.doubles.response import Response, event
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine

VERSION = "0.32.2"
PREFILL_STEP_TOKENS = 2048
HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "*",
    "Access-Control-Allow-Headers": "*",
}


class MlxLm(Dialect):
    name = "mlx-lm"
    version = VERSION
    server_header = "BaseHTTP/0.6 Python"
    http_version = "HTTP/1.0"
    page_size = 1
    default_temperature = 0.0
    reasoning_field = "reasoning"
    serves_only_its_model = True

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--prompt-cache-size", type=int, default=10)

    @property
    def has_cache(self) -> bool:
        return bool(self.flags.prompt_cache_size > 0)

    def own_memory(self) -> Memory | None:
        return Recent(self.flags.prompt_cache_size) if self.has_cache else None

    def whole(self, replying: Replying) -> Response:
        text, finish_reason = replying.finish()
        choice = {"index": 0, "finish_reason": finish_reason, "message": self.message(text)}
        body = self._envelope(replying, "chat.completion", choice)
        return _json(body | ({"usage": _usage(replying.counts)} if replying.has_usage else {}))

    def events(self, replying: Replying) -> Iterator[str]:
        def chunk(text: str, reason: str | None = None) -> str:
            delta = {"role": "assistant", **(self.text_field(text) if text else {})}
            choice = {"index": 0, "finish_reason": reason, "delta": delta}
            return event(json.dumps(self._envelope(replying, "chat.completion.chunk", choice)))

        reason = None
        for piece in replying.pieces():
            if piece.is_first:
                yield from _progress(replying.final.metrics.computed_tokens)
            if piece.text:
                yield chunk(piece.text)
            reason = piece.finish_reason
        yield chunk("", reason)
        if replying.asked.include_usage and replying.has_usage:
            # Not a chunk by its name: that is how this server calls it.
            usage = self._envelope(replying, "chat.completion") | {"usage": _usage(replying.counts)}
            yield event(json.dumps(usage))
        yield event("[DONE]")

    @property
    def stream_headers(self) -> Mapping[str, str]:
        return {"Cache-Control": "no-cache", **HEADERS}

    def error(self, status: int, message: str) -> Response:
        return _json({"error": message}, status)

    def unauthorized(self) -> Response:
        return self.error(401, "Unauthorized")  # from a proxy in front: this server knows no keys

    def unknown_route(self, path: str) -> Response:
        return Response(404, b"Not Found", headers=HEADERS)

    def unknown_model(self, name: str) -> Response:
        return self.error(404, "the model is not a local folder and the hub cannot be reached")

    def bad_json(self, message: str, line: int, column: int) -> Response:
        where = f"line {line} column {column} (char {column - 1})"
        return self.error(400, f"Invalid JSON in request body: {message}: {where}")

    def metrics(self, tally: Tally) -> Response:
        return self.unknown_route("/metrics")

    def side_route(self, method: str, path: str, body: dict[str, Any], engine: TinyEngine) -> Response | None:
        match method, path:
            case "GET", "/health":
                return _json({"status": "ok"})
            case "GET", "/v1/models":
                return _json({"object": "list", "data": [{"id": self.model, "object": "model", "created": 0}]})
        return None

    def _envelope(self, replying: Replying, kind: str, *choices: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{replying.id}",
            "system_fingerprint": f"{VERSION}-double",
            "object": kind,
            "model": replying.asked.model or "default_model",
            "created": replying.created_s,
            "choices": list(choices),
        }


def _progress(computed_tokens: int) -> Iterator[str]:
    """A comment for each step of the prompt, which is no event. The real server writes them one by one meanwhile."""
    for done in range(PREFILL_STEP_TOKENS, computed_tokens, PREFILL_STEP_TOKENS):
        yield f": keepalive {done}/{computed_tokens}\n\n"
    yield f": keepalive {computed_tokens}/{computed_tokens}\n\n"


def _usage(counts: Counts) -> dict[str, Any]:
    if counts.cached_tokens is None:
        return plain_usage(counts)
    return plain_usage(counts) | {"prompt_tokens_details": {"cached_tokens": counts.cached_tokens}}


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode(), headers=HEADERS)
