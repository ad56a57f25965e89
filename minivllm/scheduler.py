"""Who runs in this step. Reads as policy; the books are the manager's.

Decode first: every running sequence gets its next token. What is left of the token budget goes to prefill, in the
order of arrival, long prompts in chunks; both share one forward pass. Then waiting requests are admitted, first come
first served: a request that does not fit yet waits for pages and everyone behind it waits too, so nobody starves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from minivllm.cache.manager import CacheManager
from minivllm.request import Request, Status


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens `start` to `end - 1` of one request, to be computed in this step."""

    request: Request
    start: int
    end: int

    @property
    def num_tokens(self) -> int:
        return self.end - self.start

    @property
    def token_ids(self) -> list[int]:
        return self.request.token_ids[self.start : self.end]

    @property
    def samples(self) -> bool:
        """Whether this work computes the last known token, so that its logits give the next one."""
        return self.end == len(self.request.token_ids)


class Scheduler:
    def __init__(
        self,
        manager: CacheManager,
        *,
        max_batched_tokens: int,
        max_active_requests: int,
        clock: Callable[[], float],
    ) -> None:
        self._manager = manager
        self._max_batched_tokens = max_batched_tokens
        self._max_active_requests = max_active_requests
        self._clock = clock
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    @property
    def has_requests(self) -> bool:
        return bool(self.waiting or self.running)

    def add(self, request: Request) -> None:
        self.waiting.append(request)

    def remove(self, request: Request) -> None:
        (self.waiting if request.status is Status.WAITING else self.running).remove(request)

    def schedule(self) -> list[Work]:
        """The work of one step, its pages allocated. Empty when nothing can run."""
        decoding = [request for request in self.running if not request.is_prefilling]
        work = [Work(request, request.num_computed_tokens, request.num_computed_tokens + 1) for request in decoding]
        budget = self._max_batched_tokens - len(work)
        for request in [request for request in self.running if request.is_prefilling]:
            budget -= self._add_chunk(work, request, budget)
        while budget > 0 and self._may_admit() and self._manager.try_admit(self.waiting[0]):
            budget -= self._add_chunk(work, self._start(self.waiting.popleft()), budget)
        for item in work:
            self._manager.extend(item.request, item.end)
        return work

    def _may_admit(self) -> bool:
        return bool(self.waiting) and len(self.running) < self._max_active_requests

    def _add_chunk(self, work: list[Work], request: Request, budget: int) -> int:
        """Add as much of this request's prompt as the budget allows; returns how many tokens that is."""
        num_tokens = min(budget, request.num_prompt_tokens - request.num_computed_tokens)
        if num_tokens <= 0:
            return 0
        work.append(Work(request, request.num_computed_tokens, request.num_computed_tokens + num_tokens))
        return num_tokens

    def _start(self, request: Request) -> Request:
        now = self._clock()
        request.status = Status.RUNNING
        request.metrics.queue_s = now - request.arrived_at
        request.record("admitted", now, request.num_computed_tokens)
        self.running.append(request)
        return request
