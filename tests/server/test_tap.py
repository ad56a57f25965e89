"""`labbook tap` between the official client and the real server: nothing changes but what is known of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest

from labbook.tap.server import Tap
from tests.server.live import LiveServer, eventually

CORPUS = "The keeper of the light counted the keys near the stairs and wrote down the weather. " * 3
ASKED: dict[str, Any] = {"model": "tiny", "max_tokens": 6, "temperature": 0}


@dataclass
class Tapped:
    client: openai.OpenAI
    tap: Tap
    entries: list[dict[str, Any]] = field(default_factory=list)

    def entry(self, number: int) -> dict[str, Any]:
        eventually(lambda: any(entry["number"] == number for entry in self.entries))
        return next(entry for entry in self.entries if entry["number"] == number)


@pytest.fixture
def tapped(server: LiveServer) -> Iterator[Tapped]:
    entries: list[dict[str, Any]] = []
    with Tap(server.url, tell=entries.append) as tap:
        client = openai.OpenAI(base_url=f"{tap.url}/v1", api_key="sk-anything-at-all", max_retries=0)
        with client:
            yield Tapped(client, tap, entries)


def messages(question: str) -> list[Any]:
    return [{"role": "system", "content": CORPUS}, {"role": "user", "content": question}]


def test_an_answer_is_the_same_with_the_tap_and_without(tapped: Tapped, server: LiveServer) -> None:
    told = tapped.client.chat.completions.create(messages=messages("Why?"), **ASKED)
    direct = server.openai().chat.completions.create(messages=messages("Why?"), **ASKED)
    assert told.choices == direct.choices and told.usage.prompt_tokens == direct.usage.prompt_tokens


def test_shared_and_cached_tokens_agree_for_whole_and_streamed_answers(tapped: Tapped) -> None:
    first = tapped.client.chat.completions.create(messages=messages("Why?"), **ASKED)
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(tapped.client.chat.completions.create(messages=messages("When was it?"), **ASKED, **stream))
    assert chunks[-1].usage.completion_tokens == 6
    one, two = tapped.entry(1), tapped.entry(2)
    assert (one["shared"], one["cached_tokens"], one["prompt_tokens"]) == (None, 0, first.usage.prompt_tokens)
    shared = two["shared"]
    assert (shared["with"], shared["unit"], shared["of"]) == (1, "tokens", chunks[-1].usage.prompt_tokens)
    assert two["cached_tokens"] == shared["length"] // 16 * 16 > 0  # whole pages
    assert two["streamed"] and two["first_token_s"] is not None and two["error"] is None


def test_a_client_that_leaves_midway_frees_the_server(tapped: Tapped, server: LiveServer) -> None:
    stream = tapped.client.chat.completions.create(
        messages=messages("Why?"), **(ASKED | {"max_tokens": 600}), stream=True, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    stream.close()
    eventually(lambda: server.engine.stats["requests_running"] == 0)
    assert tapped.entry(1)["error"] == "the client left before the end of the answer"
    assert server.engine.stats["decoded_tokens"] < 600


def test_requests_at_once_get_their_own_answers(tapped: Tapped, server: LiveServer) -> None:
    questions = [f"What is number {number}?" for number in range(6)]

    def text(client: openai.OpenAI, question: str) -> str:
        return str(client.chat.completions.create(messages=messages(question), **ASKED).choices[0].message.content)

    with ThreadPoolExecutor(6) as pool:
        tapped_texts = list(pool.map(lambda question: text(tapped.client, question), questions))
    assert tapped_texts == [text(server.openai(), question) for question in questions]
    assert {tapped.entry(number)["status"] for number in range(1, 7)} == {200}


def test_errors_and_side_addresses_come_through(tapped: Tapped, server: LiveServer) -> None:
    with pytest.raises(openai.NotFoundError, match="'nope' does not exist"):
        tapped.client.chat.completions.create(model="nope", messages=messages("Why?"))
    assert [model.id for model in tapped.client.models.list()] == ["tiny"]
    page = server.http.get(f"{tapped.tap.url}/metrics").text
    assert "minivllm:prefix_cache_queries_total" in page
    assert tapped.entry(1)["answer_error"].startswith("the model 'nope' does not exist")
