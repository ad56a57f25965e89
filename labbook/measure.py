"""The experiments. So far one: a cold and warm pair with a changed-prefix control.

warm-up    another text of the same shape, discarded: pays for loading, compiling and connecting
cold       a fresh nonce, then the shared text: nothing but the template's head can be reused
warm       the same nonce and text, another question each time
control    another fresh nonce before the same text: what a changed prefix still reuses is the template's head
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labbook import prompts
from labbook.answer import Answer
from labbook.client import Client
from labbook.conclude import conclude
from labbook.counters import CounterWatch
from labbook.errors import ServerError, UsageError
from labbook.fields import run_record
from labbook.record import Record
from labbook.run import Plan, Run, Sent, queried_tokens

MAX_NEW_TOKENS = 8

Progress = Callable[[str], None]


def measure(
    base_url: str,
    plan: Plan | None = None,
    *,
    api_key: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Record:
    """Measure one cold and warm pair and return its record, which is not yet in any notebook.

    `options` are Plan's fields by name. Raises UsageError, or ServerError when the server cannot be
    measured: unreachable, warm-up or cold request failed, or not one warm request succeeded.
    """
    plan = replace(plan or Plan(), **options)
    client = Client(base_url, api_key=api_key, timeout_s=plan.timeout_s)
    try:
        run = observe(client, plan, progress or (lambda phase: None))
    finally:
        client.close()
    told, found = conclude(run)
    return run_record(run, told, found)


def observe(client: Client, plan: Plan, progress: Progress) -> Run:
    """Send the requests, one after the other, and read the counters in between."""
    model = plan.model or only_model(client)
    warm_up_nonce, nonce, control_nonce = prompts.fresh_nonces(3)
    text = plan.shared_text

    def asking(number: int, with_nonce: str = nonce, with_text: str = text) -> list[prompts.Message]:
        return prompts.conversation(with_nonce, with_text, prompts.question(number, plan.seed))

    def counted(phase: str, messages: list[prompts.Message]) -> Sent:
        sent = _send(client, model, phase, messages)
        watch.step(phase, queried_tokens([sent]))
        progress(phase)
        return sent

    warm_up = _must(_send(client, model, "warm-up", asking(0, warm_up_nonce, prompts.shuffled(text, plan.seed))))
    progress("warm-up")
    watch = CounterWatch(client, model)
    cold = counted("cold", asking(0))
    cold_answer = _must(cold)
    warm = [counted("warm", asking(number)) for number in range(1, plan.questions + 1)]
    control = counted("control", asking(0, control_nonce))
    if not any(sent.answer for sent in warm):
        raise ServerError(f"not one of {plan.questions} warm requests succeeded; the first said: {warm[0].error}")
    shared_tokens, source = _shared_tokens(client, model, asking(0), asking(1), cold_answer)
    return Run(
        plan=plan,
        model=model,
        base_url=client.urls.base,
        nonce=nonce,
        control_nonce=control_nonce,
        warm_up=warm_up,
        cold=cold_answer,
        sent=(cold, *warm, control),
        shared_tokens=shared_tokens,
        shared_tokens_source=source,
        engine_version=plan.engine_version or client.version(),
        dropped_fields=client.dropped_fields,
        watch=watch,
    )


def only_model(client: Client) -> str:
    """The server's model, when it lists exactly one. Raises UsageError with their names when it lists several."""
    names = client.model_names()
    if len(names) > 1:
        raise UsageError(f"the server lists {len(names)} models: choose one with --model ({', '.join(names[:8])})")
    return names[0]


def _send(client: Client, model: str, phase: str, messages: list[prompts.Message]) -> Sent:
    body = client.body_of(model, messages, MAX_NEW_TOKENS)
    try:
        return Sent(phase, client.chat(model, messages, MAX_NEW_TOKENS), None, body)
    except ServerError as error:
        return Sent(phase, None, str(error), body)


def _must(sent: Sent) -> Answer:
    if sent.answer is None:
        raise ServerError(f"the {sent.phase} request failed: {sent.error}")
    return sent.answer


def _shared_tokens(
    client: Client,
    model: str,
    cold: list[prompts.Message],
    warm: list[prompts.Message],
    answer: Answer,
) -> tuple[int | None, str]:
    """How many leading tokens cold and warm prompts share: counted by the server, else estimated from characters."""
    first, second = client.tokenize(model, cold), client.tokenize(model, warm)
    if first and second and len(first) == answer.prompt_tokens:
        differing = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
        return next(differing, min(len(first), len(second))), "counted with the server's /tokenize"
    if answer.prompt_tokens is None:
        return None, "unknown: the server neither tokenizes nor counts prompt tokens"
    characters = [message["content"] for message in cold]
    shared = len(characters[0]) / sum(map(len, characters))
    return round(answer.prompt_tokens * shared), "estimated from characters"
