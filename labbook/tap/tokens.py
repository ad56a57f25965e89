"""Token ids of a prompt, from the upstream's `/tokenize` where it has one in vLLM's shape."""

from __future__ import annotations

import json

from labbook.errors import ServerError
from labbook.tap.exchange import Headers
from labbook.tap.history import Prompt
from labbook.tap.upstream import Upstream

_TIMEOUT_S = 10.0
_TRIES = 3
_TOLD_ON = ("model", "messages", "prompt", "tools", "chat_template_kwargs", "add_generation_prompt")
_KEY_HEADERS = ("authorization", "x-api-key", "api-key")


class TokenCounter:
    """Asks the upstream once for each prompt, and no more after three failures in a row."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._known: dict[int, list[int]] = {}
        self._tries_left = _TRIES

    def tokens_of(self, prompt: Prompt, headers: Headers) -> list[int] | None:
        """The token ids, asked with the keys of `headers`; None when the upstream does not tell."""
        if prompt.number in self._known:
            return self._known[prompt.number]
        if self._tries_left <= 0:
            return None
        body = {name: prompt.body[name] for name in _TOLD_ON if name in prompt.body}
        keys = [(key, value) for key, value in headers if key.lower() in _KEY_HEADERS]
        try:
            answer = json.loads(self._upstream.ask("/tokenize", json.dumps(body).encode(), keys, _TIMEOUT_S))
        except (ServerError, ValueError):
            answer = None
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if not tokens or not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            self._tries_left -= 1
            return None
        self._tries_left = _TRIES
        self._known[prompt.number] = tokens
        return tokens

    def stop(self) -> None:
        self._tries_left = 0

    def forget_before(self, number: int) -> None:
        self._known = {known: tokens for known, tokens in self._known.items() if known >= number}
