"""One answer on its way: pieces of text as the engine makes them, then the counts that are told about it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from labs.kit.doubles.asked import Asked
from minivllm.request import RequestMetrics, RequestOutput


@dataclass(frozen=True)
class Piece:
    """New text. The first piece comes when the prompt is computed; the last one has a `finish_reason`."""

    text: str
    is_first: bool
    finish_reason: str | None


@dataclass(frozen=True)
class Counts:
    """What is told of a finished request, in tokens and seconds. `cached_tokens` None: the server does not tell.

    `prompt_s` includes the delay that was asked for; `computed_tokens` is the rest of the prompt as it is told.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    prompt_s: float
    decode_s: float

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def computed_tokens(self) -> int:
        return self.prompt_tokens - (self.cached_tokens or 0)


class Replying:
    """`pieces` once, then `counts`. `has_usage` False: the answer says nothing about its tokens."""

    def __init__(
        self,
        asked: Asked,
        outputs: Generator[RequestOutput, None, None],
        told: Callable[[RequestMetrics], Counts],
        *,
        has_usage: bool,
    ) -> None:
        self.asked = asked
        self.has_usage = has_usage
        self.id = uuid.uuid4().hex
        self.created_s = int(time.time())
        self._outputs = outputs
        self._told = told
        self._final: RequestOutput | None = None

    def pieces(self) -> Iterator[Piece]:
        is_first = True
        for output in self._outputs:
            self._final = output
            yield Piece(output.new_text, is_first, output.finish_reason)
            is_first = False

    def close(self) -> None:
        """Abort what still runs: the client has left."""
        self._outputs.close()

    def finish(self) -> tuple[str, str]:
        """The whole text, and why it ended; for an answer that is not streamed."""
        text = "".join(piece.text for piece in self.pieces())
        return text, self.final.finish_reason or "stop"

    @property
    def final(self) -> RequestOutput:
        assert self._final is not None, "the answer has no output yet"
        return self._final

    @property
    def counts(self) -> Counts:
        return self._told(self.final.metrics)
