"""The growth experiment: cold and warm time against the length of the prompt, each with a line through it.

At each length a cold and a warm request are a pair with a nonce of its own. Pairs of all lengths come in random order,
so that a machine that becomes slower does not look like a longer prompt. The slope of the cold line is what computing a
token costs, its height at nothing is the fixed cost of a request.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from labbook import prompts
from labbook.answer import Answer
from labbook.client import Client
from labbook.counters import CounterWatch
from labbook.errors import ServerError, UsageError
from labbook.growth_record import growth_record
from labbook.growth_run import GrowthRun
from labbook.identity import server_facts
from labbook.measure import Progress, only_model, send, warm_up
from labbook.record import Record
from labbook.run import Plan, Sent, queried_tokens

NUM_LENGTHS = 5
DEFAULT_REPEATS = 5
LEAST_REPEATS = 3  # fewer pairs of a length would seem to have hardly any spread
LEAST_WORDS = 50


def measure_growth(
    base_url: str,
    plan: Plan | None = None,
    *,
    api_key: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Record:
    """Measure cold and warm pairs of five lengths up to `prefix_words`, `repeats` (5) of each, and fit two lines.

    `options` are Plan's fields by name. Raises UsageError, or ServerError when the server cannot be measured: warm-up
    failed, or fewer than two lengths have both a cold and a warm answer.
    """
    plan = replace(plan or Plan(), **options)
    if plan.repeats is not None and plan.repeats < LEAST_REPEATS:
        raise UsageError(f"repeats is {plan.repeats}: growth needs {LEAST_REPEATS} or more pairs of each length")
    words = plan.shared_text.split(" ")
    if len(words) < LEAST_WORDS:
        raise UsageError(f"the longest prefix has {len(words)} words: {LEAST_WORDS} or more show how time grows")
    client = Client(base_url, api_key=api_key, timeout_s=plan.timeout_s)
    try:
        model = plan.model or only_model(client)
        observer = _Observer(client, model, plan, words, progress or (lambda phase: None))
        run = observer.observe()
        return growth_record(run, server_facts(client, model, run.watch.config), client.dropped_fields)
    finally:
        client.close()


def num_requests(plan: Plan) -> int:
    """The warm-up counts, too."""
    return 1 + 2 * NUM_LENGTHS * (plan.repeats or DEFAULT_REPEATS)


@dataclass
class _Observer:
    client: Client
    model: str
    plan: Plan
    words: list[str]
    progress: Progress

    def observe(self) -> GrowthRun:
        lengths = [round(len(self.words) * part / NUM_LENGTHS) for part in range(1, NUM_LENGTHS + 1)]
        order = lengths * (self.plan.repeats or DEFAULT_REPEATS)
        random.Random(f"order {self.plan.seed}").shuffle(order)
        warm_up_answer = self._warm_up()
        watch = CounterWatch(self.client, self.model)
        sent: list[Sent] = []
        for pair, num_words in enumerate(order, start=1):
            sent += self._pair(pair, num_words, watch)
        run = GrowthRun(
            plan=self.plan,
            model=self.model,
            base_url=self.client.urls.base,
            warm_up=warm_up_answer,
            words=tuple(order),
            sent=tuple(sent),
            watch=watch,
        )
        if len({length for length, *_ in run.pairs()}) < 2:
            first = next((one.error for one in sent if one.error), "no answer")
            raise ServerError(f"fewer than two lengths have a cold and a warm answer; the first error: {first}")
        return run

    def _warm_up(self) -> Answer:
        answer = warm_up(self.client, self.model, self.plan, prompts.fresh_nonces(1)[0])
        self.progress("warm-up")
        return answer

    def _pair(self, pair: int, num_words: int, watch: CounterWatch) -> list[Sent]:
        nonce, text = prompts.fresh_nonces(1)[0], " ".join(self.words[:num_words])
        sent = []
        for phase, number in (("cold", 0), ("warm", 1)):
            asked = prompts.conversation(nonce, text, prompts.question(number, self.plan.seed))
            one = send(self.client, self.model, phase, asked, self.plan.answer_tokens, pair)
            watch.step(phase, queried_tokens([one]))
            self.progress(phase)
            sent.append(one)
            if one.answer is None:
                break  # after a failed cold request nothing is warm
        return sent
