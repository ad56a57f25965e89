"""Who runs in this step. Reads as policy; the books are the manager's, who waits for whom is the flights' affair.

Decode first: every running request gets its next token. What is left of the token budget goes to prefill, in the
order of arrival, long prompts in chunks; both share one forward pass. Then waiting requests are admitted in the order
of the policy: a request that does not fit yet waits for pages and everyone behind it waits too, and one that has waited
for `AGE_LIMIT_STEPS` steps goes before all younger ones, so nobody starves. With optimistic admission the youngest are
preempted when pages run out; the oldest always gets on, so that ends. A request that waits for another's pages, or
for a busy slot, is passed over and holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from minivllm.cache.manager import CacheManager
from minivllm.cache.slots import Slots
from minivllm.protocols import Flights
from minivllm.request import Request, Status
from minivllm.stats import Counters

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

    def account(self, counters: Counters) -> None:
        """The tokens are computed. What a preempted request computes again is counted apart."""
        request = self.request
        new = max(self.start, request.num_seen_tokens)
        num_prefilled = max(0, min(self.end, request.num_prompt_tokens) - new)
        counters.computed_prefill_tokens += num_prefilled
        counters.decoded_tokens += max(0, self.end - max(new, request.num_prompt_tokens))
        counters.recomputed_tokens += max(0, min(self.end, request.num_seen_tokens) - self.start)
        request.metrics.computed_tokens += num_prefilled
        request.num_computed_tokens = self.end
        request.num_seen_tokens = max(request.num_seen_tokens, self.end)


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
        slots: Slots | None = None,
    ) -> None:
        self._manager = manager
        self._flights = flights
        self._slots = slots or Slots(manager, num_slots=0)
        self._max_batched_tokens = max_batched_tokens
        self._max_active_requests = max_active_requests
        self._clock = clock
        self._priority = SCHEDULING[scheduling]
        self._num_arrived = 0
        self._num_steps = 0
        self._has_preempted = False
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

    def failed(self, request: Request) -> None:
        """What this request should have computed is not there: whoever built on it in this step computes it again."""
        withdrawn = set(self._manager.publisher.withdraw(request))
        for other in list(self.running):
            if other is not request and not withdrawn.isdisjoint(other.page_table):
                self._preempt(other)

    def must_publish(self, request: Request) -> int:
        return self._flights.must_publish(request) if self._may_share(request) else 0

    def schedule(self) -> list[Work]:
        """The work of one step, its pages allocated. Empty when nothing can run."""
        self._num_steps += 1
        self._has_preempted = False
        self._flights.begin_step()
        work: list[Work] = []
        for request in sorted(self.running, key=lambda request: request.arrival_number):
            if request in self.running and not request.is_prefilling:
                self._add_decode(work, request)
        budget = self._max_batched_tokens - len(work)  # may be 0 or less: decode comes first, whatever it takes
        for request in [request for request in self.running if request.is_prefilling]:
            if budget > 0:
                budget -= self._add_chunk(work, request, budget)
        if not self._has_preempted:
            self._admit(work, budget)
        return work

    def _add_decode(self, work: list[Work], request: Request) -> None:
        """One more token, if there is a page for it; the youngest running requests make room, itself in the end."""
        end = request.num_computed_tokens + 1
        while not self._manager.can_extend(request, end):
            youngest = max(self.running, key=lambda other: other.arrival_number)
            self._preempt(youngest)
            if youngest is request:
                return
        self._add(work, request, end)

    def _preempt(self, request: Request) -> None:
        """Take the pages away, keep the answer. What was published may still be there when it comes back."""
        self._has_preempted = True
        self._manager.counters.preemptions += 1
        self._manager.release(request)
        self.running.remove(request)
        request.preempt(self._clock())
        self._wait(request)

    def _add(self, work: list[Work], request: Request, end: int) -> None:
        self._manager.extend(request, end)
        self._manager.publisher.publish_ahead(request, end)
        work.append(Work(request, request.num_computed_tokens, end))

    def _admit(self, work: list[Work], budget: int) -> None:
        if not self._may_admit(budget):
            return
        for request in sorted(self.waiting, key=self._place_in_line):
            if self._slots.must_wait(request) or self._waits_for_another(request):
                continue
            if not self._may_admit(budget) or not self._slots.try_admit(request):
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
        end = min(start + budget, request.num_prefill_tokens)
        if self._may_share(request):
            end = self._flights.claim(request, start, end)
        if end <= start:
            return 0
        self._add(work, request, end)
        return end - start

    def _may_share(self, request: Request) -> bool:
        return self._manager.prefix_cache and request.reads_prefix_cache

    def _unground(self, request_ids: Iterable[str]) -> None:
        """Released requests wait for room, in the line where their arrival puts them."""
        for request_id in request_ids:
            request = self.grounded.pop(request_id)
            request.record("released", self._clock())
            self._wait(request)

    def _start(self, request: Request) -> None:
        now = self._clock()
        self.waiting.remove(request)
        del self._waiting_since_step[request.request_id]
        self.running.append(request)
        request.status = Status.RUNNING
        if request.num_preemptions == 0:
            request.metrics.queue_s = now - request.arrived_at
        request.record("admitted", now, request.num_computed_tokens)
