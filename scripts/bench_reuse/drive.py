"""Drive an engine through a case, one step at a time, and say what came of each group of requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

from minivllm.config import SamplingParams
from minivllm.engine import Engine
from minivllm.models.loading import LoadedModel
from minivllm.request import RequestOutput
from scripts.bench_reuse.policies import BASE, Policy
from scripts.bench_reuse.workloads import Act, Case, Workload

# What one run of a group is: counts are tokens, but for the steps.
COUNTS = ("computed", "restored", "published", "evicted", "steps")
TIMES = ("first_mean_s", "first_slowest_s", "end_mean_s", "end_slowest_s")

# For the progress bar only.
PREFILL_TOKENS_PER_S, SHORT_TAIL, DECODE_STEP_S, DECODE_ROW_S = 450, 20, 0.046, 0.004

Measured = dict[str, dict[str, Any]]


def run_workload(loaded: LoadedModel, workload: Workload, policy: Policy) -> Measured:
    """One run of all cases on a new engine: what each group computed, and how long it waited."""
    config = replace(
        BASE,
        num_pages=workload.num_pages(BASE.page_size),
        single_flight=policy.single_flight,
        publication=policy.publication,
        eviction=policy.eviction,
    )
    engine = Engine(loaded, config)
    try:
        measured: Measured = {}
        for case in workload.cases:
            engine.reset_prefix_cache()
            measured |= Drive(engine).run(case)
        return measured
    finally:
        engine.close()


def warm_up(loaded: LoadedModel) -> None:
    """A long prompt and a batch of short ones, discarded: the first workload pays for no set-up."""
    engine = Engine(loaded, replace(BASE, num_pages=64))
    prompts = [tuple(range(10, 10 + BASE.max_batched_tokens)), *(tuple(range(n, n + 20)) for n in range(20, 28))]
    Drive(engine).run((Act("long", tuple(prompts[:1]), 2), Act("short", tuple(prompts[1:]), 8)))
    engine.close()


class Drive:
    """One case on one engine. What is evicted between the start of an act and the next one's is the act's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ended: dict[str, RequestOutput] = {}
        self._num_steps = 0

    def run(self, case: Case) -> Measured:
        acts: list[tuple[Act, list[str], int, int]] = []
        for act in case:
            evicted, steps = self._engine.counters.evicted_tokens, self._num_steps
            ids = self._arrive(act)
            self._wait(act, ids[0])
            evicted, steps = self._engine.counters.evicted_tokens - evicted, self._num_steps - steps
            acts.append((act, ids, evicted, steps))
        groups = dict.fromkeys(act.group for act in case)
        return {group: self._of_group([entry for entry in acts if entry[0].group == group]) for group in groups}

    def _arrive(self, act: Act) -> list[str]:
        params = SamplingParams(max_tokens=act.max_tokens, temperature=0.0, ignore_eos=True)
        return [self._engine.add_request(prompt, params) for prompt in act.prompts]

    def _wait(self, act: Act, first_id: str) -> None:
        if act.until == "idle":
            while self._engine.has_unfinished_requests:
                self._step()
            return
        num_tokens = {"first_token": 1, "decode": 2}[act.until]
        while self._num_output_tokens(first_id) < num_tokens:
            self._step()

    def _step(self) -> None:
        self._num_steps += 1
        for output in self._engine.step():
            if output.finish_reason is not None:
                if output.error is not None:
                    raise RuntimeError(f"a request of the benchmark failed: {output.error}")
                self._ended[output.request_id] = output

    def _num_output_tokens(self, request_id: str) -> int:
        return next(r.num_output_tokens for r in self._engine.requests if r.request_id == request_id)

    def _of_group(self, acts: Sequence[tuple[Act, list[str], int, int]]) -> dict[str, Any]:
        outputs = [self._ended[request_id] for _, ids, _, _ in acts for request_id in ids]
        metrics = [output.metrics for output in outputs]
        first_s = [one.ttft_s for one in metrics if one.ttft_s is not None]
        end_s = [one.e2e_s for one in metrics if one.e2e_s is not None]
        return {
            "requests": len(outputs),
            "prompt": sum(one.prompt_tokens for one in metrics),
            "computed": sum(one.computed_tokens for one in metrics),
            "restored": sum(one.cached_tokens for one in metrics),
            "published": sum(one.published_tokens for one in metrics),
            "evicted": sum(evicted for _, _, evicted, _ in acts),
            "steps": sum(steps for _, _, _, steps in acts),
            "first_mean_s": round(mean(first_s), 6),
            "first_slowest_s": round(max(first_s), 6),
            "end_mean_s": round(mean(end_s), 6),
            "end_slowest_s": round(max(end_s), 6),
            "answers_sha256": _digest([output.token_ids for output in outputs]),
        }


def estimated_s(workload: Workload, policy: Policy) -> float:
    """About how long one run takes on two cores with the 135M model; weighs the parts of the progress bar."""
    seconds = 0.0
    for case in workload.cases:
        seen: set[tuple[int, ...]] = set()
        for act in case:
            for prompt in act.prompts:
                seconds += (SHORT_TAIL if prompt in seen else len(prompt)) / PREFILL_TOKENS_PER_S
                if policy.single_flight != "off":
                    seen.add(prompt)
            seen.update(act.prompts)
            if policy.single_flight == "release_on_finish" and len(set(act.prompts)) < len(act.prompts):
                seconds += act.max_tokens * (DECODE_STEP_S + DECODE_ROW_S)  # the leader's answer, before all others
            seconds += act.max_tokens * (DECODE_STEP_S + DECODE_ROW_S * len(act.prompts))
    return seconds


def _digest(answers: Sequence[Sequence[int]]) -> str:
    return hashlib.sha256(repr([list(answer) for answer in answers]).encode()).hexdigest()[:16]
