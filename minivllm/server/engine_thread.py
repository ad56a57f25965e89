"""One thread owns all MLX work: it builds the engine, warms it up, and runs every step.

    event loop, worker threads                    engine thread
      submit / abort / call  --- commands --->    between two steps: all waiting commands, in order
      deliver(output)        <--- outputs ----    after each step: one call per request that moved

MLX arrays belong to the thread that made them (SV-12), so nothing of the engine leaves the thread but plain
values: `EngineFacts` once it is ready, a fresh `stats` dict after every step, and `RequestOutput`s.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from minivllm.config import ConfigError, SamplingParams
from minivllm.models.errors import ModelError
from minivllm.request import RequestOutput
from minivllm.server.engine_facts import EngineFacts, Health
from minivllm.server.errors import ApiError, EngineGoneError, as_api_error

if TYPE_CHECKING:
    from minivllm.engine import Engine

logger = logging.getLogger("minivllm.server")

T = TypeVar("T")
Deliver = Callable[[RequestOutput | ApiError], None]


@dataclass(frozen=True, slots=True)
class Command:
    """Work for the engine thread, and where its result goes."""

    work: Callable[[Engine], Any]
    result: Future[Any]


class EngineThread:
    """`build` runs in the thread and returns the engine. The callbacks run there too and must be quick."""

    def __init__(
        self,
        build: Callable[[], Engine],
        *,
        on_ready: Callable[[], None] = lambda: None,
        on_death: Callable[[Health], None] = lambda _: None,
    ) -> None:
        self._build = build
        self._on_ready = on_ready
        self._on_death = on_death
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._gate = threading.RLock()  # a signal handler may interrupt `call` and call again
        self._is_open = True
        self._should_stop = False
        self._num_generated_tokens = 0
        self._deliver_to: dict[str, Deliver] = {}
        self._thread = threading.Thread(target=self._run, name="minivllm-engine", daemon=True)
        self.health = Health("loading")
        self.facts: EngineFacts | None = None
        self.config_error: ConfigError | None = None
        self.stats: Mapping[str, int] = {}

    def start(self) -> None:
        self._thread.start()

    def call(self, work: Callable[[Engine], T]) -> Future[T]:
        """Run `work(engine)` in the engine thread between two steps; fails when the thread is gone."""
        result: Future[T] = Future()
        with self._gate:
            if self._is_open:
                self._commands.put(Command(work, result))
                return result
        result.set_exception(self.gone())
        return result

    def submit(
        self,
        request_id: str,
        token_ids: Sequence[int],
        params: SamplingParams,
        cache_salt: str | None,
        deliver: Deliver,
        *,
        id_slot: int | None = None,
        use_cache: bool = True,
    ) -> None:
        """Queue a request. `deliver` gets its outputs up to the one that ends it, or one error."""
        options: dict[str, Any] = {"cache_salt": cache_salt, "id_slot": id_slot, "use_cache": use_cache}

        def add(engine: Engine) -> None:
            engine.add_request(token_ids, params, request_id=request_id, **options)
            self._deliver_to[request_id] = deliver

        def report(added: Future[None]) -> None:
            error = added.exception()
            if isinstance(error, Exception):
                deliver(as_api_error(error))

        self.call(add).add_done_callback(report)

    def abort(self, request_id: str) -> None:
        """End a request whose client is gone: its pages are free before the next step."""

        def drop(engine: Engine) -> None:
            self._deliver_to.pop(request_id, None)
            engine.abort(request_id)

        self.call(drop)

    def request_stop(self) -> None:
        """Fail what is pending and end the thread, as soon as the current step is done. Returns at once."""
        self._should_stop = True
        self.call(lambda _: None)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the thread to end; False when it did not in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def gone(self) -> EngineGoneError:
        """The error for a request that cannot be served in the present state of the thread."""
        if self.health.state == "loading":
            return EngineGoneError("the model is still loading: try again when /health answers 200", "model_loading")
        if self.health.state == "dead":
            what = "the engine thread died" if self.facts is not None else "the model cannot be served"
            return EngineGoneError(f"{what}: {self.health.reason}", "engine_dead")
        return EngineGoneError("the server is shutting down", "shutting_down")

    def _run(self) -> None:
        try:
            engine = self._build()
            engine.warm_up()
            self._become_ready(engine)
            while not self._should_stop:
                self._run_commands(engine)
                if engine.has_unfinished_requests and not self._should_stop:
                    self._step(engine)
            self._close(Health("stopped"))
            engine.close()
        except BaseException as error:  # whatever it was, clients and /health must hear of it
            expected = isinstance(error, (ModelError, ConfigError))
            if not expected:
                logger.error("the engine thread died", exc_info=error)
            self.config_error = error if isinstance(error, ConfigError) else None
            self._close(Health("dead", str(error) if expected else f"{type(error).__name__}: {error}"))
            self._on_death(self.health)
        finally:
            _leave_no_stream()

    def _become_ready(self, engine: Engine) -> None:
        self.facts = EngineFacts.of(engine)
        self._take_stats(engine)
        self.health = Health("ready")
        self._on_ready()

    def _run_commands(self, engine: Engine) -> None:
        """All commands that wait; sleeps for the first one when no request needs a step."""
        may_sleep = not engine.has_unfinished_requests
        while True:
            try:
                command = self._commands.get(block=may_sleep)
            except queue.Empty:
                return
            may_sleep = False
            self._run_command(engine, command)

    def _run_command(self, engine: Engine, command: Command) -> None:
        if not command.result.set_running_or_notify_cancel():
            return
        try:
            value = command.work(engine)
            self._take_stats(engine)
        except Exception as error:
            command.result.set_exception(error)
        else:
            command.result.set_result(value)

    def _step(self, engine: Engine) -> None:
        outputs = engine.step()
        self._num_generated_tokens += sum(len(output.new_token_ids) for output in outputs)
        self._take_stats(engine)  # first: a client that has its answer finds it counted
        for output in outputs:
            self._deliver(output)

    def _deliver(self, output: RequestOutput) -> None:
        deliver = self._deliver_to.get(output.request_id)
        if output.finish_reason is not None:
            self._deliver_to.pop(output.request_id, None)
        if deliver is not None:
            deliver(output)

    def _take_stats(self, engine: Engine) -> None:
        """The engine's counts, and the tokens it sampled: its `decoded_tokens` are those with KV."""
        self.stats = {**engine.stats(), "generated_tokens": self._num_generated_tokens}

    def _close(self, health: Health) -> None:
        """Nothing is accepted from here on, and everybody who waits is told why."""
        with self._gate:
            self._is_open = False
            self.health = health
        error = self.gone()
        while self._deliver_to:
            self._deliver_to.popitem()[1](error)
        while not self._commands.empty():
            command = self._commands.get()
            if command.result.set_running_or_notify_cancel():
                command.result.set_exception(error)


def _leave_no_stream() -> None:
    """MLX keeps a stream for each thread; one that outlives its thread aborts a program that ends just then."""
    mlx = sys.modules.get("mlx.core")
    if mlx is not None:  # else the engine was never built
        mlx.clear_streams()
