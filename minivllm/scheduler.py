"""Who runs in this step. Reads as policy; the books are the manager's, who waits for whom is the flights' affair.

Decode first: every running request gets its next token. What is left of the token budget goes to prefill, in the
order of arrival, long prompts in chunks; both share one forward pass. Then waiting requests are admitted in the order
of the policy: a request that does not fit yet waits for pages and everyone behind it waits too, and one that has waited
for `AGE_LIMIT_STEPS` steps goes before all younger ones, so nobody starves. A request that waits for another's pages is
passed over and holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from minivllm.cache.manager import CacheManager
from minivllm.protocols import Flights
from minivllm.request import Request, Status

AGE_LIMIT_STEPS = 200

Priority = Callable[[CacheManager, Request], int]
"""Of a waiting request: the lowest is admitted first, of equal ones the one that came first."""


def _num_restorable_tokens(manager: CacheManager, request: Request) -> int:
    return len(manager.match(request)) * manager.page_size


SCHEDULING: dict[str, Priority] = {
    "fcfs": lambda manager, request: 0,
    "shortest_prefill": lambda manager, request: request.num_prompt_tokens - _num_restorable_tokens(manager, request),
    "longest_prefix": lambda manager, request: -_num_restorable_tokens(manager, request),
}


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
    def gives_next_token(self) -> bool:
        """Whether this work computes the last known token, so that its logits give the next one."""
        return self.end == len(self.request.token_ids)


class Scheduler:
    """Requests are `waiting` for room, `grounded` until a flight releases them, or `running`."""

    def __init__(
        self,
        manager: CacheManager,
        flights: Flights,
        *,
        max_batched_tokens: int,
        max_active_requests: int,
        clock: Callable[[], float],
        scheduling: str = "fcfs",
    ) -> None:
        self._manager = manager
        self._flights = flights
        self._max_batched_tokens = max_batched_tokens
        self._max_active_requests = max_active_requests
        self._clock = clock
        self._priority = SCHEDULING[scheduling]
        self._num_arrived = 0
        self._num_steps = 0
        self._waiting_since_step: dict[str, int] = {}
        self.waiting: list[Request] = []
        self.grounded: dict[str, Request] = {}
        self.running: list[Request] = []

    @property
    def has_requests(self) -> bool:
        return bool(self.waiting or self.grounded or self.running)

    @property
    def num_waiting(self) -> int:
        return len(self.waiting) + len(self.grounded)

    def add(self, request: Request) -> None:
        self._num_arrived += 1
        request.arrival_number = self._num_arrived
        if self._may_share(request) and not self._flights.arrive(request):
            self.grounded[request.request_id] = request
        else:
            self._wait(request)

    def remove(self, request: Request, completed: bool) -> None:
        """Forget an ended request; `completed` unless it failed or was aborted. Others may go free by it."""
        self._waiting_since_step.pop(request.request_id, None)
        if self.grounded.pop(request.request_id, None) is None:
            (self.waiting if request.status is Status.WAITING else self.running).remove(request)
        if self._may_share(request):
            self._unground(self._flights.ended(request.request_id, completed))

    def prompt_computed(self, request: Request) -> None:
        """Tell the flights; requests that waited for this prompt go free."""
        if self._may_share(request):
            self._unground(self._flights.prompt_computed(request))

    def must_publish(self, request: Request) -> int:
        return self._flights.must_publish(request) if self._may_share(request) else 0

    def schedule(self) -> list[Work]:
        """The work of one step, its pages allocated. Empty when nothing can run."""
        self._num_steps += 1
        self._flights.begin_step()
        decoding = [request for request in self.running if not request.is_prefilling]
        work = [Work(request, request.num_computed_tokens, request.num_computed_tokens + 1) for request in decoding]
        budget = self._max_batched_tokens - len(work)  # may be 0 or less: decode comes first, whatever it takes
        for request in [request for request in self.running if request.is_prefilling]:
            if budget > 0:
                budget -= self._add_chunk(work, request, budget)
        self._admit(work, budget)
        for item in work:
            self._manager.extend(item.request, item.end)
        return work

    def _admit(self, work: list[Work], budget: int) -> None:
        if not self._may_admit(budget):
            return
        for request in sorted(self.waiting, key=self._place_in_line):
            if self._waits_for_another(request):
                continue
            if not self._may_admit(budget) or not self._manager.try_admit(request):
                return
            self._start(request)
            budget -= self._add_chunk(work, request, budget)

    def _may_admit(self, budget: int) -> bool:
        return budget > 0 and len(self.running) < self._max_active_requests

    def _place_in_line(self, request: Request) -> tuple[int, int, int]:
        """Too old first, then by policy, then by arrival."""
        num_steps_waited = self._num_steps - self._waiting_since_step[request.request_id]
        if num_steps_waited >= AGE_LIMIT_STEPS:
            return 0, 0, request.arrival_number
        return 1, self._priority(self._manager, request), request.arrival_number

    def _wait(self, request: Request) -> None:
        self._waiting_since_step[request.request_id] = self._num_steps
        self.waiting.append(request)

    def _waits_for_another(self, request: Request) -> bool:
        """Whether the next page this request needs is being computed in this step."""
        if not (self._flights.goes_page_by_page and self._may_share(request)):
            return False
        start = len(self._manager.match(request)) * self._manager.page_size
        return self._flights.claim(request, start, start + 1) <= start

    def _add_chunk(self, work: list[Work], request: Request, budget: int) -> int:
        """Add as much of this request's prompt as the budget and the flights allow; returns how many tokens that is."""
        if self._flights.goes_page_by_page and self._may_share(request):
            self._manager.restore_more(request)
        start = request.num_computed_tokens
        end = min(start + budget, request.num_prompt_tokens)
        if self._may_share(request):
            end = self._flights.claim(request, start, end)
        if end <= start:
            return 0
        work.append(Work(request, start, end))
        return end - start

    def _may_share(self, request: Request) -> bool:
        return self._manager.prefix_cache and request.reads_prefix_cache

    def _unground(self, request_ids: Iterable[str]) -> None:
        """Released requests wait for room, in the line where their arrival puts them."""
        for request_id in request_ids:
            self._wait(self.grounded.pop(request_id))

    def _start(self, request: Request) -> None:
        now = self._clock()
        self.waiting.remove(request)
        del self._waiting_since_step[request.request_id]
        self.running.append(request)
        request.status = Status.RUNNING
        request.metrics.queue_s = now - request.arrived_at
        request.record("admitted", now, request.num_computed_tokens)
