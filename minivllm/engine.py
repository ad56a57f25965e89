"""Engine: requests in, one step at a time, outputs out.

A step is: schedule, forward, publish, sample, end. Nothing happens between steps, so a notebook may call `step()` by
hand and look at everything in between. Arrays belong to the thread that made them: build and use an engine in one.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minivllm.answer import Answer, add_prompt_logprobs
from minivllm.assembly import choose_components, identity_of, make_manager, make_scheduler, max_model_len
from minivllm.attention.choice import choose_attention
from minivllm.backend import mx
from minivllm.cache.pool_layout import kv_format_of, pool_layout
from minivllm.cache.slots import Slots
from minivllm.cache.storage import KVStorage, resolve_kv_dtype
from minivllm.config import EngineConfig, SamplingParams
from minivllm.models.loading import LoadedModel
from minivllm.protocols import Moment
from minivllm.request import CacheBusyError, Request, RequestError, RequestLimits, RequestOutput, Status
from minivllm.runner import ForwardResult, ModelRunner
from minivllm.scheduler import Work
from minivllm.slots import SlotFileOptions, engine_slots
from minivllm.stats import Counters
from minivllm.warm_up import warm_up


class Engine:
    """Continuous batching over paged KV with prefix reuse.

    `components` replaces parts by name ("page_pool", "prefix_index", "eviction", "publication", "flights"), each
    checked against its protocol in minivllm/protocols.py.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        config: EngineConfig | None = None,
        components: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
        slot_options: SlotFileOptions | None = None,
    ) -> None:
        self.config, self.slot_options = config or EngineConfig(), slot_options or SlotFileOptions()
        self.model_name, self.spec, self.tokenizer = loaded.name, loaded.spec, loaded.tokenizer
        self.page_size = self.config.page_size
        self.kv_dtype = resolve_kv_dtype(self.config.kv_dtype, loaded.model.model.norm.weight.dtype)
        kv_format = kv_format_of(self.config, self.kv_dtype)
        self.identity = identity_of(loaded, self.config, kv_format)
        self.layout = pool_layout(self.config, loaded.spec, kv_format)
        self.num_pages, self.bytes_per_page = self.layout.num_pages, self.layout.bytes_per_page
        self.max_model_len = max_model_len(self.config, loaded)
        self.limits = RequestLimits(loaded.spec.vocab_size, self.max_model_len, self.layout.longest_sequence_tokens)
        self.counters = Counters()
        chosen = choose_components(components, self.config, self.layout, self.identity, self.counters)
        self.manager = make_manager(chosen, self.config, self.layout, self.counters, clock)
        self._clock = clock
        self.slot_memory = Slots(self.manager, self.config.num_slots)
        self._scheduler = make_scheduler(self.manager, chosen["flights"], self.slot_memory, self.config, clock)
        self.storage = KVStorage(loaded.spec, self.num_pages, self.page_size, kv_format, self.layout.num_head_pages)
        self._runner = ModelRunner(loaded.model, self.storage, choose_attention(self.config.attention, self.storage))
        self._requests: dict[str, Request] = {}
        self._answers: dict[str, Answer] = {}
        self.slots = engine_slots(self)
        if self.config.debug_poison_pages:
            self.storage.poison(range(self.num_pages))

    @property
    def runner(self) -> ModelRunner:
        return self._runner

    @property
    def kv_cache_bytes(self) -> int:
        return self.layout.num_bytes

    @property
    def has_unfinished_requests(self) -> bool:
        return self._scheduler.has_requests

    @property
    def requests(self) -> list[Request]:
        """Requests that have not ended, in order of arrival."""
        return list(self._requests.values())

    def add_request(
        self,
        prompt_token_ids: Sequence[int],
        params: SamplingParams | None = None,
        *,
        request_id: str | None = None,
        cache_salt: str | None = None,
        id_slot: int | None = None,
        use_cache: bool = True,
    ) -> str:
        """Queue a request; returns its id. `RequestError` when it could never run, `ValueError` on an id in use.

        With `id_slot` it runs in that slot and waits for it. Without `use_cache` it computes its whole prompt.
        """
        params = params or SamplingParams()
        self.limits.check(prompt_token_ids, params)
        if cache_salt is not None and not isinstance(cache_salt, str):
            raise RequestError(f"cache_salt={cache_salt!r} is not a string: give one, or none", param="cache_salt")
        self.slot_memory.check(id_slot)
        request_id = request_id or f"request-{uuid.uuid4().hex}"
        if request_id in self._requests:
            raise ValueError(f"request id {request_id!r} is in use: give another, or none")
        request = Request(request_id, prompt_token_ids, params, cache_salt, self._clock())
        request.id_slot, request.may_read_cache = id_slot, use_cache
        request.record("queued", request.arrived_at, request.num_prompt_tokens)
        self._requests[request_id] = request
        self._answers[request_id] = Answer(request, self.tokenizer)
        self._scheduler.add(request)
        return request_id

    def step(self) -> list[RequestOutput]:
        """One forward pass: a token for every decoding request, a chunk of prompt for those in prefill.

        Returns one output for each request that got a token or ended. A request whose numbers are not finite ends with
        finish_reason "error", its pages unpublished; the others go on.
        """
        work = self._scheduler.schedule()
        if not work:
            return self._refuse_stuck_request()
        self.poison_reclaimed_pages()
        try:
            result = self._runner.forward(work)
        except Exception as error:
            return [self._fail(item.request, f"the forward pass failed: {error}") for item in work]
        outputs = [self._advance(item, place, result) for place, item in enumerate(work)]
        return [output for output in outputs if output is not None]

    def abort(self, request_id: str) -> RequestOutput | None:
        """End a request now and give back its pages. None when it is unknown or has ended."""
        request = self._requests.get(request_id)
        if request is None:
            return None
        return self._end(request, "abort")

    def logits(self, token_ids: Sequence[int], use_cache: bool = True) -> np.ndarray:
        """float32 logits [tokens computed, vocabulary] of the last tokens of a sequence, through the paged path.

        With `use_cache`, pages that the cache holds are restored and only the rest is computed.
        """
        params = SamplingParams(max_tokens=1)
        self.limits.check(token_ids, params)
        request = Request(f"logits-{uuid.uuid4().hex}", token_ids, params, None, self._clock())
        request.all_logits, request.may_read_cache = True, use_cache
        if not self.manager.try_admit(request):
            raise CacheBusyError(
                f"{len(token_ids)} tokens do not fit beside the requests that run: step until they end"
            )
        request.status = Status.RUNNING
        self._requests[request.request_id] = request
        try:
            logits = np.concatenate([self._logits_of_chunk(request) for _ in self._chunks(request)])
            self.manager.publish(request, Moment.ENDED)
            return logits
        finally:
            self.manager.release(request)
            del self._requests[request.request_id]

    def stats(self) -> dict[str, int]:
        """Counters (they only grow; tokens unless the name says requests) and gauges of this moment."""
        self.manager.expire()
        return {
            **self.counters.as_dict(),
            "pages_total": self.num_pages,
            "pages_active": self.manager.num_active_pages,
            "pages_cached": self.manager.num_cached_pages,
            "pages_free": self.manager.pool.num_free,
            "pages_partial": len(self.manager.partials),
            "requests_running": len(self._scheduler.running),
            "requests_waiting": self._scheduler.num_waiting,
        }

    def reset_prefix_cache(self, salt: str | None = None) -> int:
        """Forget all cached pages, or those of one salt; returns how many. `CacheBusyError` while requests run."""
        if self._requests:
            raise CacheBusyError(f"{len(self._requests)} requests are not finished: end or abort them before a reset")
        num_dropped = self.manager.reset(salt)
        self.slot_memory.reset(salt)
        self.poison_reclaimed_pages()
        return num_dropped

    def warm_up(self) -> None:
        """One prefill chunk and one decode pass over free pages, so that the first request pays for no set-up.

        Leaves no page and no count behind.
        """
        if self._requests:
            raise CacheBusyError("requests run already: an engine warms up before it serves")
        pages = self.layout.one_sequence(self.manager.pool.free_page_ids())
        if not pages:
            return
        longest = min(self.config.max_batched_tokens + 1, len(pages) * self.page_size, self.max_model_len)
        pages = pages[: self.manager.pages_for(longest)]
        warm_up(self._runner, pages, longest)
        if self.config.debug_poison_pages:
            self.storage.poison(pages)

    def close(self) -> None:
        """End every request and free the arrays."""
        for request_id in list(self._requests):
            self.abort(request_id)
        self.storage.close()
        mx.clear_cache()

    def _advance(self, work: Work, place: int, result: ForwardResult) -> RequestOutput | None:
        """Account for computed work, publish, and sample if it reached the last known token. None: no news."""
        request = work.request
        if request.status is not Status.RUNNING:  # it read pages of a request that failed: it computes again
            return None
        if not result.is_finite[place]:
            return self._fail(request, "the model's numbers are not finite (NaN or infinity) for this request")
        logits = result.rows(place)
        add_prompt_logprobs(request, work.start, logits)
        self._count(work)
        self.manager.publish(request, Moment.COMPUTED, self._scheduler.must_publish(request))
        if work.start < request.num_prompt_tokens <= work.end:
            self._scheduler.prompt_computed(request)
        return self._add_token(request, logits[-1]) if work.gives_next_token else None

    def _add_token(self, request: Request, logits: np.ndarray) -> RequestOutput:
        answer = self._answers[request.request_id]
        answer.add_token(logits)
        self._time_token(request)
        ended = answer.end_reason()
        return answer.report() if ended is None else self._end(request, *ended)

    def _end(self, request: Request, reason: str, stop_reason: str | int | None = None) -> RequestOutput:
        """The request is over: publish what may be found, give the pages back, hand out the text that was held."""
        self._answers[request.request_id].finish()
        self.manager.publish(request, Moment.ENDED)
        return self._forget(request, reason, stop_reason)

    def _fail(self, request: Request, error: str) -> RequestOutput:
        """What this request computed since its last publication cannot be trusted: nothing more is published."""
        self._scheduler.failed(request)
        return self._forget(request, "error", error=error)

    def _forget(
        self, request: Request, reason: str, stop_reason: str | int | None = None, error: str | None = None
    ) -> RequestOutput:
        self.slot_memory.leave(request, remember=reason != "error")
        self._scheduler.remove(request, completed=reason in ("stop", "length"))
        request.end(reason, self._clock(), stop_reason, error)
        del self._requests[request.request_id]
        return self._answers.pop(request.request_id).report()

    def _count(self, work: Work) -> None:
        work.account(self.counters)
        if work.start < work.request.num_prefill_tokens:
            work.request.record("prefill", self._clock(), work.num_tokens)

    def _time_token(self, request: Request) -> None:
        elapsed_s = self._clock() - request.arrived_at
        if request.metrics.ttft_s is None:
            request.metrics.ttft_s = elapsed_s
            request.metrics.prefill_s = elapsed_s - (request.metrics.queue_s or 0.0)
            request.record("first_token", request.arrived_at + elapsed_s)
        request.metrics.decode_s = elapsed_s - request.metrics.ttft_s

    def _chunks(self, request: Request) -> Iterable[int]:
        while request.num_computed_tokens < request.num_prompt_tokens:
            yield request.num_computed_tokens

    def _logits_of_chunk(self, request: Request) -> np.ndarray:
        end = min(request.num_computed_tokens + self.config.max_batched_tokens, request.num_prompt_tokens)
        work = Work(request, request.num_computed_tokens, end)
        self.manager.extend(request, end)
        self.poison_reclaimed_pages()
        result = self._runner.forward([work])
        if not result.is_finite[0]:
            raise FloatingPointError(f"logits of tokens {work.start} to {end - 1} are not finite (NaN or infinity)")
        self._count(work)
        self.manager.publish(request, Moment.COMPUTED)
        return result.rows(0)

    def poison_reclaimed_pages(self) -> None:
        """With `debug_poison_pages`, overwrite what has become free since the last time."""
        page_ids = sorted(set(self.manager.pages_to_poison))
        self.manager.pages_to_poison.clear()
        if self.config.debug_poison_pages:
            self.storage.poison(page_ids)

    def _refuse_stuck_request(self) -> list[RequestOutput]:
        """Nothing runs and the first in line does not fit an idle pool: say so rather than sleep for ever (PP-10)."""
        if not self._scheduler.waiting or self._scheduler.running:
            return []
        request = self._scheduler.waiting[0]
        return [self._fail(request, f"{request.max_kv_tokens} tokens do not fit the idle page pool: {self.stats()}")]
