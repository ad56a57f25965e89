"""The real engine under a double: `tiny` in a thread of its own, started anew when it has to restart."""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from time import sleep
from typing import Any

from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.memory import HeldIndex, Memory
from minivllm.config import ConfigError, EngineConfig, SamplingParams
from minivllm.engine import Engine
from minivllm.models.loading import load_model
from minivllm.request import CacheBusyError, RequestOutput
from minivllm.server.engine_facts import EngineFacts
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError

_START_S, _STOP_S = 60.0, 10.0


class TinyEngine:
    """Runs prompts one step at a time. `make_memory` gives each start an empty memory, or None: all pages findable."""

    def __init__(
        self, config: EngineConfig, make_memory: Callable[[], Memory | None], computed_token_delay_s: float
    ) -> None:
        self._config = config
        self._make_memory = make_memory
        self._computed_token_delay_s = computed_token_delay_s
        self._device = threading.Lock()  # two prompts take twice as long as one
        self._tokenizer_lock = threading.Lock()
        self.memory: Memory | None = None
        self._thread = self._started()

    @property
    def facts(self) -> EngineFacts:
        assert self._thread.facts is not None
        return self._thread.facts

    @property
    def has_cache(self) -> bool:
        return self._config.prefix_cache

    def render(self, messages: list[dict[str, Any]]) -> str:
        with self._tokenizer_lock:
            return self.facts.tokenizer.render_chat(messages, None, True)

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        with self._tokenizer_lock:
            return self.facts.tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def decode(self, token_ids: Sequence[int]) -> str:
        with self._tokenizer_lock:
            return self.facts.tokenizer.decode(token_ids)

    def run(self, token_ids: Sequence[int], params: SamplingParams, salt: str | None) -> Iterator[RequestOutput]:
        """The request's outputs as they come. Leaving the loop early aborts it. Raises `ApiError` when it fails."""
        request_id = uuid.uuid4().hex
        arrived: queue.SimpleQueue[RequestOutput | ApiError] = queue.SimpleQueue()
        self._thread.submit(request_id, token_ids, params, salt, arrived.put)
        is_first, has_ended = True, False
        try:
            while not has_ended:
                output = arrived.get()
                if isinstance(output, ApiError):
                    has_ended = True
                    raise output
                has_ended = output.finish_reason is not None
                if is_first:
                    self._take_time(output.metrics.computed_tokens)
                    is_first = False
                yield output
        finally:
            if not has_ended:
                self._thread.abort(request_id)

    def delay_s(self, computed_tokens: int) -> float:
        """What these tokens cost on top of the engine's own computing."""
        return computed_tokens * self._computed_token_delay_s

    @property
    def restored_tokens(self) -> int:
        """Prompt tokens that were really reused since the start, whatever anybody tells."""
        return self._thread.stats["restored_tokens"]

    def flush(self) -> bool:
        """Forget every cached page; False, with nothing forgotten, while requests run."""
        try:
            self._thread.call(lambda engine: engine.reset_prefix_cache()).result(_STOP_S)
        except CacheBusyError:
            return False
        return True

    def restart(self) -> None:
        self.close()
        self._thread = self._started()

    def close(self) -> None:
        self._thread.request_stop()
        self._thread.join(_STOP_S)

    def _take_time(self, computed_tokens: int) -> None:
        if delay_s := self.delay_s(computed_tokens):
            with self._device:
                sleep(delay_s)

    def _started(self) -> EngineThread:
        self.memory = self._make_memory()
        components = None if self.memory is None else {"prefix_index": HeldIndex(self._config.page_size, self.memory)}
        ready = threading.Event()
        thread = EngineThread(
            lambda: Engine(load_model("tiny"), self._config, components),
            on_ready=ready.set,
            on_death=lambda _: ready.set(),
        )
        thread.start()
        if not ready.wait(_START_S) or thread.facts is None:
            raise DoubleError(f"the engine did not start: {thread.health.reason or 'it took too long'}")
        return thread


def engine_config(**settings: Any) -> EngineConfig:
    """Raises DoubleError where the engine's own words are ConfigError's."""
    try:
        return EngineConfig(**settings)
    except ConfigError as error:
        raise DoubleError(str(error)) from None
