"""The engine table: what to switch on, off, enlarge or quantize, by engine and version, and what that does to a record.

The rows are in engines.toml; each says where it is known from. docs/engines.md is made from them by
`labbook engines --markdown`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from labbook.errors import UsageError

TURNS = ("on", "off", "enlarge", "quantize", "tell", "isolate", "forget", "order")
SOURCES = ("captured", "measured", "sources", "documented", "unverified")
KINDS = ("flag", "request field", "address")
SIGNALS = ("cached_tokens", "counters", "slots")


@dataclass(frozen=True)
class Option:
    """One thing that can be set. `source` says where its row is known from; `effect` is on what labbook measures.

    `tells` is the signal that the option makes visible, None for most.
    """

    name: str
    turn: str
    what: str
    default: str
    source: str
    effect: str
    kind: str = "flag"
    tells: str | None = None

    def __post_init__(self) -> None:
        for field, allowed in (("turn", TURNS), ("source", SOURCES), ("kind", KINDS), ("tells", (None, *SIGNALS))):
            if getattr(self, field) not in allowed:
                shown = ", ".join(map(str, allowed))
                raise ValueError(f"engine table: {self.name} has {field}={getattr(self, field)!r}, not one of {shown}")


@dataclass(frozen=True)
class Engine:
    """One engine, as known for `version`. `reuse`, `counters` and `usage` say how it caches and what it tells."""

    name: str
    title: str
    version: str
    start: str
    reuse: str
    counters: str
    usage: str
    page: str
    options: tuple[Option, ...]

    def turning(self, turn: str) -> list[Option]:
        return [option for option in self.options if option.turn == turn]


@functools.cache
def engines() -> tuple[Engine, ...]:
    """The whole table, in its order."""
    import tomllib

    text = resources.files("labbook").joinpath("engines.toml").read_text(encoding="utf-8")
    return tuple(_engine(row) for row in tomllib.loads(text)["engine"])


def engine(name: str) -> Engine:
    """The row of an engine. Raises UsageError with the names there are."""
    for row in engines():
        if row.name == name:
            return row
    raise UsageError(f"engine {name!r} is not in the table: choose one of {', '.join(row.name for row in engines())}")


def how_to_ask(signal: str, name: str | None = None) -> str:
    """What makes servers tell a signal: "(vLLM: --enable-prompt-tokens-details; SGLang: --enable-cache-report)".

    With the name of an engine in the table, its own option alone; "" where there is nothing to switch on. `signal` is
    "cached_tokens", "counters" or "slots".
    """
    assert signal in SIGNALS, f"signal {signal!r} is not one of {', '.join(SIGNALS)}"
    telling = {row.name: _names(option for option in row.options if option.tells == signal) for row in engines()}
    if name in telling:
        return f"({telling[name]})" if telling[name] else ""
    # Behind its name alone: "llama-server (llama.cpp)" would put brackets into brackets.
    shown = {row.name: row.title.split(" (")[0] for row in engines()}
    asked = [f"{shown[row]}: {options}" for row, options in telling.items() if options]
    return f"({'; '.join(asked)})" if asked else ""


def how_to_turn(turn: str, name: str) -> str:
    """The options of an engine that turn its cache "on" or "off", "enlarge" or "quantize" it; "" when it is unknown."""
    assert turn in TURNS, f"turn {turn!r} is not one of {', '.join(TURNS)}"
    return next((_names(row.turning(turn)) for row in engines() if row.name == name), "")


def _engine(row: dict[str, Any]) -> Engine:
    options = tuple(Option(**option) for option in row.pop("option"))
    return Engine(**row, options=options)


def _names(options: Iterable[Option]) -> str:
    return ", ".join(option.name for option in options)
