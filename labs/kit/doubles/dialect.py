"""What tells one server from another: its flags, its answers and errors, its other routes, its counters."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.faults import Faults
from labs.kit.doubles.memory import Memory, Slots
from labs.kit.doubles.replying import Counts, Replying
from labs.kit.doubles.response import Response
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine, engine_config
from minivllm.config import EngineConfig

POOL_TOKENS = 32_768
"""Room for cached tokens, unless a fault or a flag says otherwise: 32 MiB of `tiny`."""


class FlagParser(argparse.ArgumentParser):
    """Reads a server's own flags; a wrong one is a DoubleError, not the end of the program."""

    def error(self, message: str) -> NoReturn:
        raise DoubleError(f"{self.prog}: {message}; {self.format_usage().strip()}")


def positive(text: str) -> int:
    """A flag's value that counts something."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


class Dialect(ABC):
    """One kind of server, started with `flags` (its own command line flags) and `faults`."""

    name: str
    version: str
    server_header: str
    http_version = "HTTP/1.1"
    page_size = 16
    default_max_tokens = 64  # real servers go on until the context is full
    default_temperature = 1.0
    reasoning_field = "reasoning_content"
    serves_only_its_model = False
    single_flight = "off"
    """`"page"` where requests that come at the same time compute a shared prefix once."""

    def __init__(self, model: str, flags: Sequence[str], faults: Faults) -> None:
        self.model = model
        self.faults = faults
        parser = FlagParser(prog=self.name, add_help=False, allow_abbrev=False)
        self.add_flags(parser)
        self.flags = parser.parse_args(list(flags))

    @abstractmethod
    def add_flags(self, parser: argparse.ArgumentParser) -> None: ...

    @property
    @abstractmethod
    def has_cache(self) -> bool:
        """Whether the flags leave the prefix cache on."""

    @property
    def tells_cache(self) -> bool:
        """Whether the server says that it has a cache: one whose numbers lie says so, too."""
        is_honest = self.faults.counters == self.faults.usage == "honest"
        return self.has_cache and not (self.faults.cache_off and is_honest)

    @property
    def pool_tokens(self) -> int:
        return POOL_TOKENS

    def engine_config(self) -> EngineConfig:
        """The real engine's settings. A flag or a fault that turns the cache off turns the real one off."""
        pool_tokens = self.faults.pool_tokens or self.pool_tokens
        return engine_config(
            page_size=self.page_size,
            num_pages=-(-pool_tokens // self.page_size),
            prefix_cache=self.has_cache and not self.faults.cache_off,
            single_flight=self.single_flight,
        )

    def make_memory(self) -> Memory | None:
        """None: every cached page may be found."""
        return Slots(1) if self.faults.one_slot else self.own_memory()

    def own_memory(self) -> Memory | None:
        return None

    def warm_up(self, engine: TinyEngine, tally: Tally) -> None:
        """What the server computes, and counts, before it takes requests."""
        return

    @abstractmethod
    def whole(self, replying: Replying) -> Response: ...

    @abstractmethod
    def events(self, replying: Replying) -> Iterator[str]:
        """The stream's events, `[DONE]` included."""

    @property
    def stream_headers(self) -> Mapping[str, str]:
        return {}

    @abstractmethod
    def error(self, status: int, message: str) -> Response: ...

    @abstractmethod
    def unauthorized(self) -> Response: ...

    @abstractmethod
    def unknown_route(self, path: str) -> Response: ...

    @abstractmethod
    def unknown_model(self, name: str) -> Response: ...

    @abstractmethod
    def bad_json(self, message: str, line: int, column: int) -> Response: ...

    @abstractmethod
    def metrics(self, tally: Tally) -> Response: ...

    @abstractmethod
    def side_route(self, method: str, path: str, body: dict[str, Any], engine: TinyEngine) -> Response | None:
        """Every other address; None where there is none."""

    def text_field(self, text: str) -> dict[str, str]:
        return {self.reasoning_field if self.faults.reasoning else "content": text}

    def message(self, text: str) -> dict[str, Any]:
        """An answer's message: with a reasoning channel that used up all the tokens, it has no content."""
        if not self.faults.reasoning:
            return {"role": "assistant", "content": text}
        return {"role": "assistant", "content": None, self.reasoning_field: text}


def plain_usage(counts: Counts) -> dict[str, Any]:
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "total_tokens": counts.total_tokens,
    }
