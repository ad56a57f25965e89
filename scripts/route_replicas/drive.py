"""The traffic, sent through a router, and what each replica counted meanwhile."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

from labbook.answer import Answer
from labbook.client import Client
from labbook.counters import CounterWatch
from labbook.errors import LabbookError, ServerError, UsageError
from labbook.prompts import Message, conversation, question, synthetic_text
from labbook.signals import CounterDelta

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Sizes:
    """Readers ask `questions` of `documents`, `clients` at a time; a replica has `pool_pages` pages of 16 tokens.

    With the defaults and the `tiny` model all documents need 1.2 times the pages of one replica: two replicas hold
    them easily if each has documents of its own, and neither can hold them all.
    """

    documents: int = 12
    questions: int = 144
    words: int = 120
    clients: int = 4
    new_tokens: int = 8
    pool_pages: int = 256
    replicas: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "seed" else 1
            if value < least:
                raise UsageError(f"--{field.name.replace('_', '-')} is {value}: give {least} or more")


@dataclass(frozen=True)
class Outcome:
    """What came of one policy. `deltas` has each replica's tokens found and looked up, in the order of their start."""

    answers: tuple[Answer, ...]
    errors: tuple[str, ...]
    deltas: tuple[CounterDelta, ...]
    page_tokens: int | None


def asked_documents(sizes: Sizes) -> list[int]:
    """The document of each question, in the order they are asked: each as often as the others, in no pattern.

    A pattern would decide the result: of an even number of documents in turn, round robin over two replicas sends each
    to the same replica every time.
    """
    order = [number % sizes.documents for number in range(sizes.questions)]
    random.Random(sizes.seed).shuffle(order)
    return order


def prompts(sizes: Sizes) -> list[list[Message]]:
    """A document as system message, then a question that nobody asks twice. Documents differ from their first word."""
    texts = [synthetic_text(sizes.words, seed=number) for number in range(sizes.documents)]
    return [
        conversation(f"{document:03} is the number of this document.", texts[document], question(number))
        for number, document in enumerate(asked_documents(sizes))
    ]


def run_traffic(
    router_url: str, replica_urls: Sequence[str], model: str, sizes: Sizes, on_answer: Callable[[], None]
) -> Outcome:
    """Send every prompt through the router. Raises ServerError when a replica's counters cannot be read."""
    clients = [Client(url, timeout_s=TIMEOUT_S) for url in replica_urls]
    try:
        watches = [CounterWatch(client, model) for client in clients]
        answers, errors = _send_all(router_url, model, sizes, on_answer)
        for watch in watches:
            watch.step("traffic", None)
        deltas = tuple(_delta(watch, url) for watch, url in zip(watches, replica_urls, strict=True))
        return Outcome(tuple(answers), tuple(errors), deltas, watches[0].page_tokens)
    finally:
        for client in clients:
            client.close()


def _delta(watch: CounterWatch, url: str) -> CounterDelta:
    delta = watch.delta("traffic")
    if delta is None:
        raise ServerError(f"the replica at {url} cannot be measured: {watch.why}")
    return delta


def _send_all(
    router_url: str, model: str, sizes: Sizes, on_answer: Callable[[], None]
) -> tuple[list[Answer], list[str]]:
    """Each client takes the next prompt as soon as it has its answer."""
    own, opened = threading.local(), list[Client]()

    def send(messages: list[Message]) -> Answer | str:
        if not hasattr(own, "client"):
            own.client = Client(router_url, timeout_s=TIMEOUT_S)
            opened.append(own.client)
        try:
            answer: Answer = own.client.chat(model, messages, sizes.new_tokens)
            return answer
        except LabbookError as error:
            return str(error)
        finally:
            on_answer()

    pool = ThreadPoolExecutor(sizes.clients)
    try:
        results = list(pool.map(send, prompts(sizes)))
    finally:
        pool.shutdown(cancel_futures=True)
        for client in opened:
            client.close()
    return [r for r in results if isinstance(r, Answer)], [r for r in results if isinstance(r, str)]
