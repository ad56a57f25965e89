"""An engine without arrays: the real scheduler and books, and a "model" whose KV can be read by a person.

It is what labs and tests of the control plane run on; pages of two tokens and pools of four can be drawn.

The KV of a position is `(salt, all tokens up to it)`. Whoever reads a page therefore finds out whether it holds exactly
the prefix it should: a stale page, a page of another parent or a slot that was never written is caught where it is
read. The books are audited after every schedule, step, abort and reset, and every free page is poisoned.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from minivllm.cache.audit import check_books, check_slots
from minivllm.cache.eviction import POLICIES as EVICTION
from minivllm.cache.manager import CacheManager
from minivllm.cache.page_pool import RefCountedPagePool, TwoPrecisionPagePool
from minivllm.cache.prefix_index import ChainedPrefixIndex
from minivllm.cache.publication import POLICIES
from minivllm.cache.slots import Slots
from minivllm.config import SamplingParams
from minivllm.flights import POLICIES as FLIGHTS
from minivllm.protocols import Flights, Moment
from minivllm.request import Request, RequestLimits, Status
from minivllm.scheduler import Scheduler, Work
from minivllm.stats import Counters
from minivllm.stop_text import AnswerText

Slot = tuple[str | None, tuple[int, ...]] | None
POISON: Slot = None
FIRST_TOKEN = 5
NUM_SAMPLED_TOKENS = 50


def T(num_tokens: int) -> list[int]:
    """`num_tokens` ids 5, 6, 7, ..."""
    return list(range(FIRST_TOKEN, FIRST_TOKEN + num_tokens))


def next_token(token_ids: Sequence[int]) -> int:
    """What the toy model says after these tokens: it depends on every one of them."""
    return FIRST_TOKEN + zlib.crc32(repr(list(token_ids)).encode()) % NUM_SAMPLED_TOKENS


def oracle(prompt: Sequence[int], max_tokens: int) -> list[int]:
    """The answer without pages, batches or reuse."""
    token_ids = list(prompt)
    for _ in range(max_tokens):
        token_ids.append(next_token(token_ids))
    return token_ids[len(prompt) :]


def letter(token_id: int) -> str:
    return chr(ord("a") + token_id % 26)


class LetterDecoder:
    def add(self, token_id: int) -> str:
        return letter(token_id)

    def flush(self) -> str:
        return ""


class CheckedIndex(ChainedPrefixIndex):
    """Ours, and it insists on what the protocol promises it: children are removed before their parent."""

    def remove(self, page_id: int) -> None:
        children = [other for other in self.page_ids() if self.parent_of(other) == page_id]
        assert not children, f"page {page_id} is removed before {children}, which are chained to it"
        super().remove(page_id)


class ConstantHashIndex(ChainedPrefixIndex):
    """Every key collides with every other."""

    def _hash(self, data: bytes) -> bytes:
        return b"the same for everybody"


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class ToyEngine:
    def __init__(
        self,
        *,
        num_pages: int = 8,
        page_size: int = 4,
        publication: str = "incremental",
        single_flight: str = "off",
        scheduling: str = "fcfs",
        admission: str = "reserve",
        eviction: str = "lru",
        num_head_pages: int = 0,
        prefix_cache: bool = True,
        prefix_ttl_s: float | None = None,
        max_batched_tokens: int = 64,
        max_active_requests: int = 8,
        num_slots: int = 0,
        components: dict[str, Any] | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.counters = Counters()
        parts: dict[str, Any] = {
            "page_pool": (
                TwoPrecisionPagePool(num_pages, num_pages // 2) if num_head_pages else RefCountedPagePool(num_pages)
            ),
            "prefix_index": CheckedIndex(page_size),
            "publication": POLICIES[publication](),
            **(components or {}),
        }
        self.flights: Flights = parts.pop("flights", None) or FLIGHTS[single_flight](self.counters, page_size)
        parts.setdefault("eviction", EVICTION[eviction](parts["prefix_index"].parent_of))
        self.manager = CacheManager(
            **parts,
            page_size=page_size,
            prefix_cache=prefix_cache,
            prefix_ttl_s=prefix_ttl_s,
            admission=admission,
            num_head_pages=num_head_pages,
            counters=self.counters,
            clock=self.clock,
        )
        self.slots = Slots(self.manager, num_slots)
        self.scheduler = Scheduler(
            self.manager,
            self.flights,
            max_batched_tokens=max_batched_tokens,
            max_active_requests=max_active_requests,
            scheduling=scheduling,
            clock=self.clock,
            slots=self.slots,
        )
        # With pages in two precisions a sequence has only its head in the half that is in full precision.
        pool_tokens = (num_pages - (num_pages // 2 - num_head_pages if num_head_pages else 0)) * page_size
        self.limits = RequestLimits(vocab_size=1000, max_model_len=10_000, pool_tokens=pool_tokens)
        self.kv: list[list[Slot]] = [[POISON] * page_size for _ in range(num_pages)]
        self.requests: list[Request] = []
        self.work: list[Work] = []
        """The work of the newest step."""
        self._texts: dict[str, AnswerText] = {}
        self._num_submitted = 0

    def submit(
        self,
        prompt: Iterable[int],
        max_tokens: int = 1,
        *,
        salt: str | None = None,
        reads_cache: bool = True,
        id_slot: int | None = None,
        stop: Sequence[str] = (),
        stop_token_ids: Sequence[int] = (),
    ) -> Request:
        params = SamplingParams(max_tokens=max_tokens, temperature=0.0, stop=stop, stop_token_ids=stop_token_ids)
        self._num_submitted += 1
        request = Request(f"R{self._num_submitted}", list(prompt), params, salt, self.clock())
        request.may_read_cache, request.id_slot = reads_cache, id_slot
        self.limits.check(request.prompt_token_ids, params)
        self.requests.append(request)
        self._texts[request.request_id] = AnswerText(LetterDecoder(), params.stop_strings)
        self.scheduler.add(request)
        return request

    def step(self, failing: Collection[Request] = ()) -> None:
        """Schedule, forward, publish, sample, end, as the engine does; the numbers of `failing` are not finite."""
        self.work = self.scheduler.schedule()
        assert self.work or not self.scheduler.has_requests, "requests wait and nothing runs"
        self._poison_reclaimed_pages()
        self.audit(within_step=True)
        self._forward(self.work)
        for item in self.work:
            if item.request.status is not Status.RUNNING:
                continue  # it read pages of a request that failed
            if item.request in failing:
                self.scheduler.failed(item.request)
                self._forget(item.request, "error", remember=False)
            else:
                self._advance(item)
        self.audit()

    def run(self) -> None:
        """Step until nobody is left."""
        for _ in range(10_000):
            if not self.scheduler.has_requests:
                return
            self.step()
        raise AssertionError(f"still running after 10,000 steps: {self.requests}")

    def ask(self, prompt: Iterable[int], max_tokens: int = 1, **options: Any) -> Request:
        """Submit one request and run until it has ended."""
        request = self.submit(prompt, max_tokens, **options)
        self.run()
        return request

    def abort(self, request: Request) -> None:
        self._end(request, "abort")
        self.audit()

    def reset(self, salt: str | None = None) -> int:
        num_dropped = self.manager.reset(salt)
        self.slots.reset(salt)
        self._poison_reclaimed_pages()
        self.audit()
        return num_dropped

    def audit(self, within_step: bool = False) -> None:
        check_books(self.manager, self.requests, within_step=within_step)
        check_slots(self.slots)
        for page_id in self.manager.pool.free_page_ids():
            if page_id not in self.manager.pages_to_poison:
                assert self.kv[page_id] == [POISON] * self.manager.page_size, f"free page {page_id} was written"

    @property
    def pages(self) -> tuple[int, int, int]:
        """(free, cached, active)"""
        return self.manager.pool.num_free, self.manager.num_cached_pages, self.manager.num_active_pages

    def erase(self, slot_id: int) -> int:
        num_erased = self.slots.erase(self.slots.slots[slot_id])
        self._poison_reclaimed_pages()
        self.audit()
        return num_erased

    def hits(self, token_ids: Sequence[int], salt: str | None = None) -> int:
        """Tokens that are findable now, whole pages, up to the whole list."""
        pages = self.manager.index.lookup(token_ids, len(token_ids) // self.manager.page_size, salt)
        return len(pages) * self.manager.page_size

    def _forward(self, work: Sequence[Work]) -> None:
        """All rows are written before any is read, as in a layer of the real model."""
        size = self.manager.page_size
        for item in work:
            for position in range(item.start, item.end):
                page_id = item.request.page_table[position // size]
                self.kv[page_id][position % size] = _slot(item.request, position)
        for item in work:
            for position in range(item.end):
                found = self.kv[item.request.page_table[position // size]][position % size]
                assert found == _slot(item.request, position), (
                    f"{item.request} reads {found} at position {position} from pages {item.request.page_table}"
                )

    def _advance(self, item: Work) -> None:
        request = item.request
        item.account(self.counters)
        self.manager.publish(request, Moment.COMPUTED, self.scheduler.must_publish(request))
        if item.start < request.num_prompt_tokens <= item.end:
            self.scheduler.prompt_computed(request)
        if item.gives_next_token:
            self._sample(request)

    def _sample(self, request: Request) -> None:
        token_id = next_token(request.token_ids)
        request.token_ids.append(token_id)
        if token_id in request.params.stop_ids:
            return self._end(request, "stop")
        text = self._texts[request.request_id]
        text.add(token_id)
        if text.stopped_by is not None:
            return self._end(request, "stop")
        if request.num_output_tokens == request.params.max_tokens:
            self._end(request, "length")
        return None

    def _end(self, request: Request, reason: str) -> None:
        self.manager.publish(request, Moment.ENDED)
        self._forget(request, reason)

    def _forget(self, request: Request, reason: str, remember: bool = True) -> None:
        self.slots.leave(request, remember)
        self.scheduler.remove(request, completed=reason in ("stop", "length"))
        request.end(reason, self.clock())
        self.requests.remove(request)

    def _poison_reclaimed_pages(self) -> None:
        for page_id in self.manager.pages_to_poison:
            self.kv[page_id] = [POISON] * self.manager.page_size
        self.manager.pages_to_poison.clear()


def _slot(request: Request, position: int) -> Slot:
    return request.cache_salt, tuple(request.token_ids[: position + 1])
