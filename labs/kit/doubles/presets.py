"""Faults by name, for the command line and for labs: `one-slot`, `evicting=2048`, `refuse=seed,stream`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.faults import Faults


@dataclass(frozen=True)
class Preset:
    """`settings` are Faults' fields. The field `takes`, if any, has a value that may be given after "="."""

    what: str
    settings: dict[str, Any]
    takes: str | None = None

    def given(self, name: str, text: str | None) -> dict[str, Any]:
        if text is None:
            return self.settings
        if self.takes is None:
            raise DoubleError(f"fault {name} takes no value, and got {text!r}")
        default = self.settings[self.takes]
        try:
            value = tuple(text.split(",")) if isinstance(default, tuple) else type(default)(text)
        except ValueError:
            raise DoubleError(f"fault {name}={text}: {text!r} is no {type(default).__name__}") from None
        return {**self.settings, self.takes: value}


PRESETS = {
    "cache-off": Preset("nothing is ever reused", {"cache_off": True}),
    "one-slot": Preset("only what the last conversation left can be reused", {"one_slot": True}),
    "evicting": Preset("room for so many cached tokens only", {"pool_tokens": 2304}, "pool_tokens"),
    "salted": Preset("each request has a cache of its own", {"salted": True}),
    "clock-injected": Preset("the time of day stands in front of the first message", {"clock_injected": True}),
    "counters-lying": Preset(
        "the hit counter moves as a healthy cache's would, and nothing is reused",
        {"cache_off": True, "counters": "as_if_cached"},
    ),
    "counters-zero": Preset("the hit counter never moves, whatever is reused", {"counters": "zero"}),
    "no-metrics": Preset("there is no /metrics", {"counters": "absent"}),
    "usage-lying": Preset(
        "cached tokens are told as a healthy cache's, and nothing is reused",
        {"cache_off": True, "usage": "as_if_cached"},
    ),
    "usage-zero": Preset("0 cached tokens are told, whatever is reused", {"usage": "zero"}),
    "no-details": Preset("usage without prompt_tokens_details", {"usage": "no_details"}),
    "no-usage": Preset("no usage at all", {"usage": "absent"}),
    "foreign": Preset(
        "a stranger's prompt of so many tokens before each request", {"foreign_tokens": 64}, "foreign_tokens"
    ),
    "delay": Preset(
        "so many more seconds for each computed prompt token",
        {"computed_token_delay_s": 0.001},
        "computed_token_delay_s",
    ),
    "slow-first": Preset(
        "so many more seconds for the first request", {"slow_first_request_s": 3.0}, "slow_first_request_s"
    ),
    "restart": Preset("the engine starts anew before this request", {"restarts_at_request": 2}, "restarts_at_request"),
    "hang": Preset("this request gets no answer", {"hangs_at_request": 1}, "hangs_at_request"),
    "hang-mid-stream": Preset(
        "this request's stream stops after its beginning",
        {"hangs_at_request": 1, "hangs_mid_stream": True},
        "hangs_at_request",
    ),
    "refuse": Preset("400 for requests with these fields", {"refused_fields": ("max_tokens",)}, "refused_fields"),
    "refuse-silently": Preset(
        "400 for requests with these fields, without naming one",
        {"refused_fields": ("max_tokens",), "refusal_names_field": False},
        "refused_fields",
    ),
    "html-errors": Preset("a proxy's error page in the place of an answer", {"error": "html"}),
    "unauthorized": Preset("401", {"error": "unauthorized"}),
    "rate-limited": Preset("429", {"error": "rate_limited"}),
    "loading": Preset("503", {"error": "loading"}),
    "empty": Preset("an empty body", {"error": "empty"}),
    "reasoning": Preset("all text comes in the reasoning channel", {"reasoning": True}),
    "keep-alives": Preset("so many comments before each event", {"keep_alives": 1}, "keep_alives"),
    "split": Preset("network chunks of so many bytes", {"split_bytes": 1}, "split_bytes"),
    "crlf": Preset("lines end in CR LF", {"line_end": "\r\n"}),
}


def faults_of(named: Iterable[str]) -> Faults:
    """`["one-slot", "delay=0.002"]` as Faults. Raises DoubleError; two names that set one field differently clash."""
    settings: dict[str, Any] = {}
    for text in named:
        name, has_value, value = text.partition("=")
        if name not in PRESETS:
            raise DoubleError(f"fault {name!r} is not known: choose of {', '.join(PRESETS)}")
        given = PRESETS[name].given(name, value if has_value else None)
        clashing = [field for field in given if field in settings and settings[field] != given[field]]
        if clashing:
            raise DoubleError(f"fault {text!r} sets {clashing[0]} to another value than a fault before it")
        settings |= given
    return Faults(**settings)


def names_in(faults: Faults) -> list[str]:
    """The fields that are not at their default, as `field=value`: what a double was started with."""
    changed = [field for field in fields(faults) if getattr(faults, field.name) != field.default]
    return [f"{field.name}={getattr(faults, field.name)!r}" for field in changed]
