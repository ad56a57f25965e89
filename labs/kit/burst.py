"""Requests that meet in one engine, driven step by step: who computed what, in which step, after how many seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from labbook.prompts import synthetic_text
from minivllm import LLM, SamplingParams
from minivllm.request import Request, RequestMetrics

Prompt = tuple[int, ...]
When = Literal["prefill", "decode", "end"]
"""When those who come late arrive: after the first request's first step, in its decode, or after its end."""

POLICIES: dict[str, dict[str, str]] = {
    "off": {"single_flight": "off", "publication": "on_finish"},
    "release on finish": {"single_flight": "release_on_finish", "publication": "on_finish"},
    "release after prefill": {"single_flight": "release_after_prefill", "publication": "on_finish"},
    "page": {"single_flight": "page", "publication": "incremental"},
}
"""Fields of EngineConfig by the name of the policy."""


@dataclass(frozen=True)
class Happening:
    """An event of a request, in the step that recorded it; `at_s` counts from the arrival of the first request."""

    step: int
    at_s: float
    name: str
    tokens: int


@dataclass(frozen=True)
class Track:
    """One request from its arrival to its end. It arrived after `events[0].step` steps."""

    name: str
    events: tuple[Happening, ...]
    metrics: RequestMetrics

    def step_of(self, event: str) -> int:
        """The step of the first event whose name begins so."""
        return next(one.step for one in self.events if one.name.startswith(event))

    @property
    def steps_to_first_token(self) -> int:
        return self.step_of("first_token") - self.events[0].step

    @property
    def steps_to_end(self) -> int:
        return self.step_of("ended") - self.events[0].step


@dataclass(frozen=True)
class Burst:
    """What came of it. `step_ends_s[k]` is when step k + 1 was over, on the clock of the tracks."""

    tracks: tuple[Track, ...]
    step_ends_s: tuple[float, ...]

    @property
    def computed(self) -> int:
        """Prompt tokens that went through the model, of all requests together."""
        return sum(track.metrics.computed_tokens for track in self.tracks)

    @property
    def restored(self) -> int:
        return sum(track.metrics.cached_tokens for track in self.tracks)

    @property
    def published(self) -> int:
        return sum(track.metrics.published_tokens for track in self.tracks)

    @property
    def num_steps(self) -> int:
        return len(self.step_ends_s)

    @property
    def first_token_s(self) -> float:
        """Mean over the requests, each from its own arrival."""
        return mean(track.metrics.ttft_s or 0.0 for track in self.tracks)

    @property
    def slowest_s(self) -> float:
        """The longest completion of a request, from its own arrival."""
        return max(track.metrics.e2e_s or 0.0 for track in self.tracks)

    @property
    def mean_steps_to_first_token(self) -> float:
        return mean(track.steps_to_first_token for track in self.tracks)

    @property
    def most_steps_to_end(self) -> int:
        return max(track.steps_to_end for track in self.tracks)


def prose(encode: Callable[[str], list[int]], num_tokens: int, number: int = 0) -> Prompt:
    """Exactly `num_tokens` tokens of dull prose; another number gives another text, from its first token on."""
    tokens = encode(f"{number}. {synthetic_text(2 * num_tokens, number)}")
    if len(tokens) < num_tokens:
        raise ValueError(f"the text {number} has {len(tokens)} tokens where {num_tokens} are needed")
    return tuple(tokens[:num_tokens])


def run_burst(
    llm: LLM, prompts: Sequence[Prompt], max_tokens: int, *, late: Sequence[Prompt] = (), when: When = "decode"
) -> Burst:
    """Send `prompts` at once to an empty cache, then `late` at the moment `when`; step until all have ended.

    Greedy, and exactly `max_tokens` new tokens for each. The engine must be idle.
    """
    llm.reset_prefix_cache()
    run = _Run(llm, SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True))
    run.arrive(prompts)
    first = run.requests[0]
    while late and llm.engine.has_unfinished_requests and not _is_time(first, when):
        run.step()
    run.arrive(late)
    while llm.engine.has_unfinished_requests:
        run.step()
    return run.burst()


def _is_time(first: Request, when: When) -> bool:
    """In decode means: after the forward pass that follows the first token."""
    if when == "end":
        return first.finish_reason is not None
    return first.num_computed_tokens > 0 if when == "prefill" else first.num_output_tokens >= 2


class _Run:
    """Steps an engine and notes in which step each event of each request was recorded."""

    def __init__(self, llm: LLM, params: SamplingParams) -> None:
        self._engine = llm.engine
        self._params = params
        self._events: list[list[Happening]] = []
        self._step_ends: list[float] = []
        self.requests: list[Request] = []

    def arrive(self, prompts: Sequence[Prompt]) -> None:
        for prompt in prompts:
            request_id = self._engine.add_request(prompt, self._params)
            self.requests += [request for request in self._engine.requests if request.request_id == request_id]
            self._events.append([])
        self._collect()

    def step(self) -> None:
        for output in self._engine.step():
            if output.error is not None:
                raise RuntimeError(f"a request of the burst failed: {output.error}")
        self._step_ends.append(time.monotonic() - self.requests[0].arrived_at)  # the clock of an engine
        self._collect()

    def burst(self) -> Burst:
        tracks = (
            Track(f"request {number}", tuple(events), request.metrics)
            for number, (request, events) in enumerate(zip(self.requests, self._events, strict=True), start=1)
        )
        return Burst(tuple(tracks), tuple(self._step_ends))

    def _collect(self) -> None:
        step, begin_s = len(self._step_ends), self.requests[0].arrived_at
        for request, seen in zip(self.requests, self._events, strict=True):
            seen += [
                Happening(step, event.at_s + request.arrived_at - begin_s, event.name, event.tokens)
                for event in request.metrics.events[len(seen) :]
            ]


def burst_fields(label: str, repeats: Sequence[Burst]) -> dict[str, Any]:
    """The fields of a record: counts of the first run, which are those of every run, and the seconds of each."""
    first = repeats[0]
    return {
        "label": label,
        "requests": len(first.tracks),
        "prompt_tokens": [track.metrics.prompt_tokens for track in first.tracks],
        "computed_tokens": first.computed,
        "restored_tokens": first.restored,
        "published_tokens": first.published,
        "steps": first.num_steps,
        "first_token_s": [round(burst.first_token_s, 6) for burst in repeats],
        "slowest_s": [round(burst.slowest_s, 6) for burst in repeats],
    }
