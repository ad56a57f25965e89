"""The proxy that leaves nothing but the clock."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from labbook.client import Client
from labbook.errors import ServerError
from labbook.measure import measure
from labs.kit.serving import Server, running_server
from labs.kit.stripping import stripped, stripping_proxy


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("tiny", is_quiet=True) as running:
        yield running


def test_counts_are_taken_out_of_an_object_and_the_rest_is_kept() -> None:
    whole = {"choices": [{"index": 0}], "usage": {"prompt_tokens": 3}, "timings": {"cache_n": 2}, "id": "x"}
    assert json.loads(stripped(json.dumps(whole).encode()) or b"") == {"choices": [{"index": 0}], "id": "x"}


@pytest.mark.parametrize("text", [b"[DONE]", b"", b"[1]", b'{"choices": [], "id": "x"}', b"\xff"])
def test_what_holds_no_counts_passes_byte_by_byte(text: bytes) -> None:
    assert stripped(text) == text


def test_an_event_that_held_nothing_but_counts_is_dropped() -> None:
    assert stripped(b'{"choices": [], "usage": {"prompt_tokens": 3}}') is None


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_keeps_its_text_and_its_end_and_loses_its_counts(server: Server, streams: bool) -> None:
    with stripping_proxy(server.base_url) as url:
        client = Client(url)
        client.shape = client.shape if streams else client.shape - {"stream", "stream_options"}
        answer = client.chat("tiny", [{"role": "user", "content": "Where is the page?"}], 4)
        client.close()
    assert (answer.streamed, answer.finish_reason) == (streams, "length")
    assert answer.first_field == "content"
    assert answer.prompt_tokens is answer.cached_tokens is answer.timings is None


def test_metrics_are_hidden_and_errors_are_passed_on(server: Server) -> None:
    with stripping_proxy(server.base_url) as url:
        client = Client(url)
        with pytest.raises(ServerError, match="404"):
            client.metrics_page()
        with pytest.raises(ServerError, match="no-such-model"):
            client.chat("no-such-model", [{"role": "user", "content": "?"}], 1)
        assert client.model_names() == ["tiny"]
        client.close()


def test_a_measurement_through_it_has_only_the_clock(server: Server) -> None:
    with stripping_proxy(server.base_url) as url:
        record = measure(url, prefix_words=60, repeats=1)
    assert record["signals"]["clock"]["value"] is not None
    assert record["signals"]["cached_tokens"]["value"] is record["signals"]["counters"]["value"] is None
    assert record["prompt_tokens"] is record["identity"] is None
