"""What can be made to go wrong with a double, as one checked value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labs.kit.doubles.errors import DoubleError

COUNTERS = ("honest", "as_if_cached", "zero", "absent")
USAGE = ("honest", "as_if_cached", "zero", "no_details", "absent")
ERRORS = ("", "html", "unauthorized", "rate_limited", "loading", "empty")
REFUSABLE = ("max_tokens", "seed", "stream", "stream_options", "system", "temperature")
LINE_ENDS = ("\n", "\r\n", "\r")


@dataclass(frozen=True)
class Faults:
    """All off by default. Chat requests are counted from 1, whatever becomes of them.

    What is reused: nothing (`cache_off`); only what the one last conversation left (`one_slot`); what fits into
    `pool_tokens` tokens; nothing, because each request has a salt of its own (`salted`) or the time of day in front
    of its first message (`clock_injected`).

    What is told: `counters` of /metrics, and the cached tokens of an answer (`usage`, llama-server's `timings` too).
    "as_if_cached" tells what a healthy prefix cache would have reused, "zero" tells 0 whatever was reused.
    `foreign_tokens` is the length of a stranger's prompt that is computed before each request.

    When: each computed prompt token costs `computed_token_delay_s` more, one request after the other, as on one
    device; request 1 after each start `slow_first_request_s` more; the engine is started anew before request
    `restarts_at_request`; request `hangs_at_request` gets no answer, or, with `hangs_mid_stream`, only its beginning.

    What is refused: requests that use one of `refused_fields` ("system" is the role); all requests, or only
    `error_at_request`, get `error`.

    How it is sent: text in the `reasoning` channel; `keep_alives` comments before each event; network chunks of
    `split_bytes` bytes; another `line_end`.
    """

    cache_off: bool = False
    one_slot: bool = False
    pool_tokens: int | None = None
    salted: bool = False
    clock_injected: bool = False

    counters: str = "honest"
    usage: str = "honest"
    foreign_tokens: int = 0

    computed_token_delay_s: float = 0.0
    slow_first_request_s: float = 0.0
    restarts_at_request: int | None = None
    hangs_at_request: int | None = None
    hangs_mid_stream: bool = False

    refused_fields: tuple[str, ...] = ()
    refusal_names_field: bool = True
    error: str = ""
    error_at_request: int | None = None

    reasoning: bool = False
    keep_alives: int = 0
    split_bytes: int | None = None
    line_end: str = "\n"

    def __post_init__(self) -> None:
        for name, allowed in (("counters", COUNTERS), ("usage", USAGE), ("error", ERRORS), ("line_end", LINE_ENDS)):
            self._require(name, getattr(self, name) in allowed, f"one of {', '.join(map(repr, allowed))}")
        for name in ("computed_token_delay_s", "slow_first_request_s"):
            value = getattr(self, name)
            self._require(name, _is_number(value) and math.isfinite(value) and value >= 0, "seconds, 0 or more")
        for name in ("foreign_tokens", "keep_alives"):
            self._require(name, _is_whole(getattr(self, name), 0), "a whole number, 0 or more")
        for name in ("pool_tokens", "split_bytes", "restarts_at_request", "hangs_at_request", "error_at_request"):
            value = getattr(self, name)
            self._require(name, value is None or _is_whole(value, 1), "a whole number, 1 or more, or None")
        self._require("refused_fields", isinstance(self.refused_fields, tuple), 'a tuple, such as ("seed",)')
        unknown = [name for name in self.refused_fields if name not in REFUSABLE]
        self._require("refused_fields", not unknown, f"made of {', '.join(REFUSABLE)}")
        self._require("hangs_mid_stream", not self.hangs_mid_stream or self.hangs_at_request, "used with a request")

    def _require(self, name: str, is_right: object, right: str) -> None:
        if not is_right:
            raise DoubleError(f"{name}={getattr(self, name)!r} must be {right}")


def _is_whole(value: object, at_least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
