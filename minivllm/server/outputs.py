"""The outputs of one request on the event loop, for as long as its client is there to read them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from types import TracebackType

from fastapi import Request

from minivllm.request import RequestOutput
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError, ClientGoneError, EngineGoneError, RequestFailedError
from minivllm.server.prepare import Prepared


class Outputs:
    """`async with Outputs(...) as outputs: async for output in outputs`, the last one has a finish reason.

    Leaving the block early, by whatever road, aborts the request: its pages are free within a step (SC-09).
    Raises `ApiError` when the request fails and `ClientGoneError` when the client hangs up.
    """

    def __init__(
        self,
        engine: EngineThread,
        prepared: Prepared,
        client: Request,
        observe_ttft_s: Callable[[float], None],
    ) -> None:
        self._engine = engine
        self._prepared = prepared
        self._client = client
        self._observe_ttft_s = observe_ttft_s
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[RequestOutput | Exception] = asyncio.Queue()
        self._asked_at = time.monotonic()
        self._has_first = False
        self._has_ended = False

    async def __aenter__(self) -> Outputs:
        asked = self._prepared
        self._engine.submit(
            asked.request_id,
            asked.token_ids,
            asked.params,
            asked.cache_salt,
            self._deliver,
            id_slot=asked.id_slot,
            use_cache=asked.use_cache,
        )
        self._watcher = asyncio.create_task(self._watch_client())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watcher.cancel()
        if not self._has_ended:
            self._engine.abort(self._prepared.request_id)

    def __aiter__(self) -> Outputs:
        return self

    async def __anext__(self) -> RequestOutput:
        if self._has_ended:
            raise StopAsyncIteration
        arrived = await self._arrived.get()
        if isinstance(arrived, ClientGoneError):
            raise arrived
        if isinstance(arrived, Exception):
            self._has_ended = True
            raise arrived
        self._note(arrived)
        return arrived

    async def last(self) -> RequestOutput:
        """The output that ends the request; it carries everything the earlier ones did."""
        async for output in self:
            final = output
        return final

    def _note(self, output: RequestOutput) -> None:
        self._has_ended = output.finish_reason is not None
        if output.finish_reason == "error":
            raise RequestFailedError(f"the request failed: {output.error}")
        if output.finish_reason == "abort":
            raise EngineGoneError("the request was aborted", "aborted")
        if not self._has_first:  # timed here, so that waiting for a step that had begun already is counted
            self._has_first = True
            self._observe_ttft_s(time.monotonic() - self._asked_at)

    def _deliver(self, item: RequestOutput | ApiError) -> None:
        """Called in the engine thread."""
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the server has stopped, nobody listens
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, item)

    async def _watch_client(self) -> None:
        while (await self._client.receive())["type"] != "http.disconnect":
            pass
        self._arrived.put_nowait(ClientGoneError())
