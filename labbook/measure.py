"""Measure an experiment in groups: send the requests, read the counters in between, repeat while it helps.

The groups are described in experiments.py, when it is enough in repeats.py. Before the first group comes a warm-up,
another text of the same shape: it pays for loading, compiling and connecting, and is recorded apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from labbook import prompts
from labbook.answer import Answer
from labbook.client import Client
from labbook.conclude import conclude, is_settled, needs_short_requests
from labbook.counters import CounterWatch
from labbook.errors import ServerError, UsageError
from labbook.experiments import COLD_WARM, Experiment, Nonces, Step, experiment_named, short_steps
from labbook.fields import run_record
from labbook.grouped_run import Run
from labbook.identity import server_facts
from labbook.record import Record
from labbook.repeats import Repeats, repeats_for
from labbook.run import Plan, Sent, queried_tokens

Progress = Callable[[str], None]


def measure(
    base_url: str,
    plan: Plan | None = None,
    *,
    experiment: str = COLD_WARM.name,
    api_key: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Record:
    """Measure one experiment in groups and return its record, which is not yet in any notebook.

    `experiment` is "cold_warm", "repeat", "control" or "eviction"; `options` are Plan's fields by name. Raises
    UsageError, or ServerError when the server cannot be measured: unreachable, warm-up or first cold request failed, or
    not one judged request succeeded.
    """
    chosen = experiment_named(experiment)
    plan = replace(plan or Plan(), **options)
    client = Client(base_url, api_key=api_key, timeout_s=plan.timeout_s)
    try:
        model = plan.model or only_model(client)
        run = _Observer(client, model, plan, chosen, progress or (lambda phase: None)).observe()
        facts = server_facts(client, model, run.watch.config)
    finally:
        client.close()
    told, found = conclude(run)
    return run_record(run, facts, told, found, client.dropped_fields)


def only_model(client: Client) -> str:
    """The server's model, when it lists exactly one. Raises UsageError with their names when it lists several."""
    names = client.model_names()
    if len(names) > 1:
        raise UsageError(f"the server lists {len(names)} models: choose one with --model ({', '.join(names[:8])})")
    return names[0]


def send(
    client: Client, model: str, phase: str, messages: list[prompts.Message], answer_tokens: int, group: int = 1
) -> Sent:
    """One request, and what became of it; a refusal is an error in it, and raises nothing."""
    body = client.body_of(model, messages, answer_tokens)
    try:
        return Sent(phase, client.chat(model, messages, answer_tokens), None, body, group)
    except ServerError as error:
        return Sent(phase, None, str(error), body, group)


def must(sent: Sent) -> Answer:
    """The answer. Raises ServerError when there is none."""
    if sent.answer is None:
        raise ServerError(f"the {sent.phase} request failed: {sent.error}")
    return sent.answer


def warm_up(client: Client, model: str, plan: Plan, nonce: str) -> Answer:
    """A request of the measured shape with other words. Raises ServerError when it fails."""
    text = prompts.shuffled(plan.shared_text, plan.seed)
    asked = prompts.conversation(nonce, text, prompts.question(0, plan.seed))
    return must(send(client, model, "warm-up", asked, plan.answer_tokens))


@dataclass
class _Observer:
    """Sends group after group, one request after the other."""

    client: Client
    model: str
    plan: Plan
    experiment: Experiment
    progress: Progress
    sent: list[Sent] = field(default_factory=list)
    nonces: list[Nonces] = field(default_factory=list)

    def observe(self) -> Run:
        repeats = repeats_for(self.plan.repeats)
        first, nonce = self._first_nonces()
        warm_up_answer = warm_up(self.client, self.model, self.plan, nonce)
        self.progress("warm-up")
        watch = CounterWatch(self.client, self.model)
        begun_s, shared = time.monotonic(), None
        for look in repeats.looks:
            if self.nonces and self._takes_too_long(look, time.monotonic() - begun_s):
                break
            while len(self.nonces) < look:
                self._send_group(watch, self.experiment.nonces(self.plan) if self.nonces else first)
            shared = shared or self._shared_tokens()
            run = self._run(repeats, warm_up_answer, nonce, watch, shared)
            if needs_short_requests(run):
                self._send_steps(watch, short_steps(self.plan))
                run = self._run(repeats, warm_up_answer, nonce, watch, shared)
            if repeats.is_fixed or is_settled(run):
                break
        return run

    def _first_nonces(self) -> tuple[Nonces, str]:
        """Those of the first group, and one for the warm-up that begins otherwise than all of them."""
        first = self.experiment.nonces(self.plan)
        used = {first.cold[0], first.control[0], *(nonce[0] for nonce in first.competing)}
        fresh = prompts.fresh_nonces(len(prompts.FIRST_LETTERS))
        return first, next((nonce for nonce in fresh if nonce[0] not in used), fresh[0])

    def _takes_too_long(self, look: int, elapsed_s: float) -> bool:
        """No result is looked at here, so stopping for time makes no verdict likelier."""
        return elapsed_s * look / len(self.nonces) > self.plan.most_s

    def _send_group(self, watch: CounterWatch, nonces: Nonces) -> None:
        self.nonces.append(nonces)
        group = len(self.nonces)
        self._send_steps(watch, self.experiment.steps(self.plan, nonces, group))
        self._refuse_a_group_without_judged_answers(group)

    def _send_steps(self, watch: CounterWatch, steps: Sequence[Step]) -> None:
        is_cold = True
        for step in steps:
            if not is_cold and step.phase in ("warm", "again"):
                continue  # without its cold request none of them would be warm
            sent = send(self.client, self.model, step.phase, step.messages, self.plan.answer_tokens, len(self.nonces))
            watch.step(step.phase, queried_tokens([sent]))
            self.progress(step.phase)
            self.sent.append(sent)
            if step.phase == "cold":
                is_cold = sent.answer is not None
                if len(self.nonces) == 1:
                    must(sent)

    def _refuse_a_group_without_judged_answers(self, group: int) -> None:
        """Only the control of a pair may be missing: what is judged, or needed for it, must be there once."""
        if group > 1:
            return
        for phase in ("warm", self.experiment.judged):
            sent = [sent for sent in self.sent if sent.phase == phase]
            if not any(one.answer for one in sent):
                raise ServerError(f"not one of {len(sent)} {phase} requests succeeded; the first said: {sent[0].error}")

    def _run(
        self, repeats: Repeats, warm_up_answer: Answer, nonce: str, watch: CounterWatch, shared: tuple[int | None, str]
    ) -> Run:
        return Run(
            plan=self.plan,
            experiment=self.experiment,
            repeats=repeats,
            model=self.model,
            base_url=self.client.urls.base,
            warm_up=warm_up_answer,
            warm_up_nonce=nonce,
            nonces=tuple(self.nonces),
            sent=tuple(self.sent),
            shared_tokens=shared[0],
            shared_tokens_source=shared[1],
            watch=watch,
        )

    def _shared_tokens(self) -> tuple[int | None, str]:
        """How many leading tokens cold and warm prompts share: counted by the server, else by characters."""
        steps = {step.phase: step.messages for step in self.experiment.steps(self.plan, self.nonces[0], 1)}
        cold, warm = steps["cold"], steps["warm"]
        prompt_tokens = next(sent.answer.prompt_tokens for sent in self.sent if sent.phase == "cold" and sent.answer)
        first, second = self.client.tokenize(self.model, cold), self.client.tokenize(self.model, warm)
        if first and second and len(first) == prompt_tokens:
            differing = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
            return next(differing, min(len(first), len(second))), "counted with the server's /tokenize"
        if prompt_tokens is None:
            return None, "unknown: the server neither tokenizes nor counts prompt tokens"
        characters = [message["content"] for message in cold]
        shared = len(characters[0]) / sum(map(len, characters)) if cold != warm else 1.0
        return round(prompt_tokens * shared), "estimated from characters"
