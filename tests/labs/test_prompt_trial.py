"""Pairs of prompts on real servers with the model `tiny`: counts only, and the bodies alone had said them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("minivllm.models.tiny", exc_type=ImportError)

from labbook.client import Client
from labbook.explain import explain
from labbook.tap.private_file import request_bodies
from labbook.tap.server import Tap
from labs.kit.arrangements import ARRANGEMENTS, arrangement
from labs.kit.ferry_desk import fresh_desks, two_asks
from labs.kit.parameters import Parameters
from labs.kit.prompt_trial import Sender, foretold, same_counts
from labs.kit.rendering import renderer_of
from labs.kit.serving import Server, running_server
from labs.kit.stamping import StampingApplication


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("tiny", is_quiet=True) as running:
        yield running


@pytest.fixture
def sender(server: Server, tmp_path: Path) -> Iterator[Sender]:
    client = Client(server.base_url)
    renderer, _ = renderer_of(Parameters("tiny", True, "", tmp_path / "labbook.md"), "tiny")
    yield Sender(client, "tiny", renderer)
    client.close()


@pytest.mark.parametrize("side", ["before", "after"])
def test_the_server_restores_what_the_bodies_had_foretold(sender: Sender, side: str) -> None:
    trials = [
        sender.send(one.title, one.messages(side, two_asks(desk, 2)))
        for one, desk in zip(ARRANGEMENTS, fresh_desks(len(ARRANGEMENTS)), strict=True)
    ]
    assert foretold(trials) == "In 5 of 5 pairs the server restored exactly the whole pages that both prompts share."
    assert same_counts(trials) == "5 of 5 prompts have as many tokens here as on the server."
    assert {2 * trial.computed_tokens < trial.prompt_tokens for trial in trials} == {side == "after"}


def test_a_server_that_tokenizes_is_asked_and_counts_the_same(server: Server, tmp_path: Path) -> None:
    asked, said = renderer_of(Parameters("tiny", True, server.base_url, tmp_path / "labbook.md"), "tiny")
    here, _ = renderer_of(Parameters("tiny", True, "", tmp_path / "labbook.md"), "tiny")
    assert said == "tokens by the server's own /tokenize"
    bodies = [{"messages": messages} for messages in arrangement("clock").messages("before", two_asks("357935", 2))]
    one, other = (explain(*bodies, renderer) for renderer in (asked, here))
    assert (one.position, one.cause, one.lost_tokens) == (other.position, "clock", other.lost_tokens)


def test_what_the_application_inserts_is_seen_by_the_tap_alone(sender: Sender, server: Server, tmp_path: Path) -> None:
    saved = arrangement("clock").messages("after", two_asks(*fresh_desks(1), 2))
    times, out = iter(["09:41:07", "10:26:53"]), tmp_path / "tap" / "bodies.jsonl"
    with Tap(server.base_url, out=out) as tap:
        application = StampingApplication(f"{tap.url}/v1", "tiny", clock=lambda: next(times))
        answers = [application.ask(messages) for messages in saved]
        application.close()
    sent = request_bodies(out)
    assert [body["messages"][0]["content"].partition("\n")[0][-23:] for body in sent] == [
        "Current time: 09:41:07.", "Current time: 10:26:53.",
    ]  # fmt: skip
    of_saved, of_sent = (explain(*bodies, sender.renderer) for bodies in (map(sender.body, saved), sent))
    assert (of_saved.is_alarm, of_sent.cause) == (False, "clock")
    assert answers[1].cached_tokens == of_sent.reusable_tokens < of_saved.reusable_tokens


def test_words_in_the_place_of_tokens_are_told(sender: Sender) -> None:
    words, _ = renderer_of(Parameters("a/model", True, "", Path("labbook.md")), "somebody/model")
    trial = Sender(sender.client, "tiny", words).send(
        "words", arrangement("blank").messages("before", two_asks(*fresh_desks(1), 2))
    )
    assert trial.explanation.cause == "whitespace"
    assert same_counts([trial]).startswith("Words were compared here")
    assert foretold([trial]).startswith("In 0 of 1 pairs") and "words: " in foretold([trial])
