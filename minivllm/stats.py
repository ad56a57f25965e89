"""Counters of one engine: whole numbers that only grow. Tokens, unless the name says requests."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from minivllm.request import Request


@dataclass(slots=True)
class Counters:
    lookup_requests: int = 0
    hit_requests: int = 0
    queried_tokens: int = 0
    restored_tokens: int = 0
    computed_prefill_tokens: int = 0
    recomputed_tokens: int = 0
    decoded_tokens: int = 0
    published_tokens: int = 0
    evicted_tokens: int = 0
    preemptions: int = 0
    flights_opened: int = 0
    flight_followers: int = 0

    def count_lookup(self, request: Request) -> None:
        """A request that may read the cache is admitted: its prompt is queried once, however often it is admitted."""
        if not request.is_counted:
            return
        if request.num_preemptions == 0:
            self.lookup_requests += 1
            self.queried_tokens += request.num_prompt_tokens
        self.count_restored(request)

    def count_restored(self, request: Request) -> None:
        """Prompt tokens that this request has neither computed nor restored before."""
        num_gained = min(request.num_computed_tokens, request.num_prompt_tokens) - request.num_seen_tokens
        request.num_seen_tokens = max(request.num_seen_tokens, request.num_computed_tokens)
        if num_gained <= 0:
            return
        self.hit_requests += request.metrics.cached_tokens == 0
        self.restored_tokens += num_gained
        request.metrics.cached_tokens += num_gained

    def count_published(self, request: Request, num_tokens: int) -> None:
        if not request.is_counted:
            return
        self.published_tokens += num_tokens
        request.metrics.published_tokens += num_tokens

    def as_dict(self) -> dict[str, int]:
        return asdict(self)
