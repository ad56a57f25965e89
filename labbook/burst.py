"""The burst experiment: requests that arrive together at a cold cache, and one that arrives late.

cold       one request alone, before and after the bursts: the yardstick, of the same length
identical  N equal requests at once
document   N requests at once over one text, each with another question
distinct   N requests at once that share nothing but the template's head
late       an equal request just after the first token of the one before

Each of them begins with a nonce of its own, so all are cold. Threads wait at a barrier and are let go together; every
request has a connection of its own, and opening it counts, for the yardstick too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from labbook import prompts
from labbook.answer import Answer
from labbook.burst_record import burst_record
from labbook.burst_run import Burst, BurstRun, Shot
from labbook.client import Client
from labbook.counters import CounterWatch
from labbook.errors import ServerError, UsageError
from labbook.identity import server_facts
from labbook.measure import Progress, only_model
from labbook.prompts import Message
from labbook.record import Record
from labbook.run import Plan, Sent, queried_tokens

NEW_TOKENS = 32
MOST_REQUESTS = 256


def measure_burst(
    base_url: str,
    num_requests: int,
    plan: Plan | None = None,
    *,
    new_tokens: int = NEW_TOKENS,
    api_key: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Record:
    """Measure bursts of `num_requests` and return their record, which is not yet in any notebook.

    Every answer has at most `new_tokens` tokens. `options` are Plan's fields by name; `questions` is not used. Raises
    UsageError, or ServerError when the server cannot be measured: unreachable, warm-up or a single cold request failed,
    or not one request of a burst succeeded.
    """
    if not 2 <= num_requests <= MOST_REQUESTS:
        raise UsageError(f"a burst of {num_requests} requests: give 2 to {MOST_REQUESTS}")
    if new_tokens < 1:
        raise UsageError(f"new tokens is {new_tokens}: at least 1 is needed")
    plan = replace(plan or Plan(), **options)
    client = Client(base_url, api_key=api_key, timeout_s=plan.timeout_s)
    try:
        model = plan.model or only_model(client)
        shooter = _Shooter(base_url, api_key, plan, client, model, new_tokens, progress or (lambda phase: None))
        return burst_record(_observe(shooter, num_requests))
    finally:
        client.close()


def _observe(shooter: _Shooter, count: int) -> BurstRun:
    """The single cold requests and the bursts, one after the other, and the counters in between."""
    plan, client = shooter.plan, shooter.client
    warm_up_nonce, first, second, same, document, late, *distinct = prompts.fresh_nonces(6 + count)

    def asking(nonce: str, number: int = 0) -> list[Message]:
        return prompts.conversation(nonce, plan.shared_text, prompts.question(number, plan.seed))

    shuffled = prompts.shuffled(plan.shared_text, plan.seed)
    warm_up = prompts.conversation(warm_up_nonce, shuffled, prompts.question(0, plan.seed))
    _must(shooter.alone("warm-up", warm_up))
    watch = shooter.watch = CounterWatch(client, shooter.model)
    cold = [_must(shooter.alone("cold", asking(first)))]
    bursts = [
        shooter.together("identical", [asking(same)] * count),
        shooter.together("document", [asking(document, number) for number in range(count)]),
        shooter.together("distinct", [asking(nonce) for nonce in distinct]),
        shooter.late("late", asking(late)),
    ]
    cold.append(_must(shooter.alone("cold", asking(second))))
    answered = [shot for burst in bursts for shot in burst.shots if shot.sent.answer]
    if not answered:
        raise ServerError(f"not one request of the bursts succeeded; the first said: {bursts[0].shots[0].sent.error}")
    return BurstRun(
        plan=plan,
        model=shooter.model,
        base_url=client.urls.base,
        num_requests=count,
        new_tokens=shooter.new_tokens,
        cold=tuple(cold),
        bursts=tuple(bursts),
        nonces={"cold": [first, second], "identical": same, "document": document, "distinct": distinct, "late": late},
        facts=server_facts(client, shooter.model, watch.config),
        dropped_fields=client.dropped_fields,
        watch=watch,
    )


def _must(burst: Burst) -> Answer:
    """The answer of the only request of a phase. Raises ServerError when it failed."""
    sent = burst.shots[0].sent
    if sent.answer is None:
        raise ServerError(f"the {burst.kind} request failed: {sent.error}")
    return sent.answer


@dataclass
class _Shooter:
    """Sends requests from threads of their own. `client` learns in the warm-up which fields the server takes."""

    base_url: str
    api_key: str | None
    plan: Plan
    client: Client
    model: str
    new_tokens: int
    progress: Progress
    watch: CounterWatch | None = field(default=None)

    def alone(self, kind: str, messages: list[Message]) -> Burst:
        return self._counted(kind, self._volley(kind, [messages]))

    def together(self, kind: str, conversations: Sequence[list[Message]]) -> Burst:
        return self._counted(kind, self._volley(kind, conversations))

    def late(self, kind: str, messages: list[Message]) -> Burst:
        """The second request leaves when the first one's first token is here; without such a moment it stays."""
        leader, follower = self._new_client(), self._new_client()
        is_time, seen = threading.Event(), threading.Event()

        def first_token() -> None:
            seen.set()
            is_time.set()

        leader.on_first_token = first_token
        shots: list[Shot | None] = [None, None]

        def lead() -> None:
            try:
                shots[0] = self._shoot(leader, kind, messages)
            finally:
                is_time.set()

        def follow() -> None:
            is_time.wait()
            if seen.is_set():
                shots[1] = self._shoot(follower, kind, messages)

        _run_threads([lead, follow])
        why = "" if seen.is_set() else "the first request showed no first token, so there was no moment to be late for"
        return self._counted(kind, [shot for shot in shots if shot is not None], why)

    def _volley(self, kind: str, conversations: Sequence[list[Message]]) -> list[Shot]:
        barrier = threading.Barrier(len(conversations))
        shots: list[Shot | None] = [None] * len(conversations)

        def sender(number: int, client: Client) -> Callable[[], None]:
            def send() -> None:
                barrier.wait()
                shots[number] = self._shoot(client, kind, conversations[number])

            return send

        _run_threads([sender(number, self._new_client()) for number in range(len(conversations))])
        return [shot for shot in shots if shot is not None]

    def _new_client(self) -> Client:
        client = Client(self.base_url, api_key=self.api_key, timeout_s=self.plan.timeout_s)
        client.shape = self.client.shape
        return client

    def _shoot(self, client: Client, kind: str, messages: list[Message]) -> Shot:
        body = client.body_of(self.model, messages, self.new_tokens)
        at_s = time.perf_counter()
        try:
            sent = Sent(kind, client.chat(self.model, messages, self.new_tokens), None, body)
        except ServerError as error:
            sent = Sent(kind, None, str(error), body)
        finally:
            client.close()
        self.client.shape &= client.shape  # what one request had to leave out, the next ones leave out at once
        self.progress(kind)
        return Shot(at_s, sent)

    def _counted(self, kind: str, shots: list[Shot], why: str = "") -> Burst:
        if self.watch is not None:
            self.watch.step(kind, queried_tokens([shot.sent for shot in shots]))
        return Burst(kind, tuple(shots), why)


def _run_threads(works: Sequence[Callable[[], None]]) -> None:
    """All of them at once, until the last has ended. An interrupted measurement does not wait for them."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
