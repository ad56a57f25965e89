"""Every fault changes what it says, and nothing else: the same four requests, seen with it and without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests

from labs.kit.doubles import Double, DoubleError, Faults, double
from labs.kit.doubles.presets import PRESETS, faults_of, names_in
from tests.labs.doubles_probe import FLAGS, A, B, body_of, chat, counted, get, network_chunks, post

CHATS = [(A, "Why?"), (A, "How?"), (B, "Why?"), (A, "Where?")]


def facts(server: Double) -> dict[str, Any]:
    """What is seen of four requests, and what was really reused: counts and bytes, no times."""
    heard, restored = [], []
    for system, question in CHATS:
        heard.append(chat(server, system, question))
        restored.append(server.engine.restored_tokens)
    return {
        "answers": [(one.status, one.text, one.finish_reason) for one in heard],
        "channels": [one.fields for one in heard],
        "prompt tokens": [one.prompt_tokens for one in heard],
        "usage": [sorted(one.usage or {}) for one in heard],
        "told": [one.cached_tokens for one in heard],
        "reused": restored,
        "counted": counted(server),
        "comments": [one.raw.count(b"\n: ") + one.raw.startswith(b": ") for one in heard],
        "line ends": [one.raw.count(b"\r") for one in heard],
    }


@pytest.fixture(scope="module")
def healthy() -> dict[str, Any]:
    with double("vllm", flags=FLAGS["vllm"]) as server:
        return facts(server)


CHANGES: dict[str, set[str]] = {
    "cache-off": {"told", "reused", "counted"},
    "one-slot": {"told", "reused", "counted"},
    "evicting=64": {"told", "reused", "counted"},
    "salted": {"told", "reused", "counted"},
    "clock-injected": {"answers", "prompt tokens", "told", "reused", "counted"},
    "counters-lying": {"told", "reused"},
    "counters-zero": {"counted"},
    "no-metrics": {"counted"},
    "usage-lying": {"reused", "counted"},
    "usage-zero": {"told"},
    "no-details": {"told", "usage"},
    "no-usage": {"told", "usage", "prompt tokens"},
    "foreign": {"counted"},
    "delay=0.00001": set(),
    "slow-first=0.001": set(),
    "restart=2": {"told", "reused", "counted"},
    "reasoning": {"channels"},
    "keep-alives": {"comments"},
    "split": set(),
    "crlf": {"line ends"},
}
ANSWERED_OTHERWISE = {
    "hang",
    "hang-mid-stream",
    "refuse",
    "refuse-silently",
    "html-errors",
    "unauthorized",
    "rate-limited",
    "loading",
    "empty",
}


def test_every_fault_that_has_a_name_is_tested_here() -> None:
    assert {name.split("=")[0] for name in CHANGES} | ANSWERED_OTHERWISE == set(PRESETS)


@pytest.mark.parametrize("name", CHANGES)
def test_a_fault_changes_what_it_says_and_nothing_else(name: str, healthy: dict[str, Any]) -> None:
    with double("vllm", flags=FLAGS["vllm"], faults=faults_of([name])) as server:
        seen = facts(server)
    assert {fact for fact in seen if seen[fact] != healthy[fact]} == CHANGES[name]


def test_a_healthy_double_reuses_whole_pages_of_the_conversation_it_knows(healthy: dict[str, Any]) -> None:
    first, again, other, back = healthy["told"]
    assert first == other == 0 < again == back
    assert again % 16 == 0 and healthy["reused"] == [0, again, again, again + back]
    assert healthy["counted"] == (sum(healthy["prompt tokens"]), again + back)


def test_lying_counters_count_as_a_healthy_cache_would_while_nothing_is_reused(healthy: dict[str, Any]) -> None:
    with double("vllm", flags=FLAGS["vllm"], faults=faults_of(["counters-lying"])) as server:
        seen = facts(server)
    assert seen["reused"] == [0, 0, 0, 0] and seen["counted"] == healthy["counted"]


def test_one_slot_forgets_a_chat_when_another_takes_its_turn() -> None:
    for engine, flags in FLAGS.items():
        with double(engine, flags=flags, faults=Faults(one_slot=True)) as server:
            told = [chat(server, system).cached_tokens or 0 for system in (A, A, B, A, A)]
        assert min(told[1], told[4]) >= 32, engine
        assert max(told[0], told[2], told[3]) < 8, engine  # the template's head at most


def test_a_small_pool_keeps_the_last_prompt_and_evicts_the_one_before() -> None:
    with double("vllm", flags=FLAGS["vllm"], faults=Faults(pool_tokens=64)) as server:
        assert [bool(chat(server, system).cached_tokens) for system in (A, A, B, B, A)] == [
            False,
            True,
            False,
            True,
            False,
        ]
        assert chat(server, A * 4).status == 400


def test_a_salt_of_its_own_isolates_each_request_from_itself() -> None:
    with double("vllm", flags=FLAGS["vllm"]) as server:
        told = [chat(server, A, cache_salt=salt).cached_tokens for salt in ("one", "two", "one")]
    assert told[:2] == [0, 0] and told[2]


def test_each_computed_token_costs_its_delay_and_a_reused_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("labs.kit.doubles.tiny_engine.sleep", waits.append)
    with double("vllm", flags=FLAGS["vllm"], faults=Faults(computed_token_delay_s=0.5)) as server:
        cold, warm = chat(server, A), chat(server, A)
    assert cold.prompt_tokens == warm.prompt_tokens and warm.cached_tokens
    assert waits == [0.5 * cold.prompt_tokens, 0.5 * (warm.prompt_tokens - warm.cached_tokens)]


def test_the_first_request_after_each_start_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("labs.kit.doubles.server_double.sleep", waits.append)
    with double("vllm", faults=Faults(slow_first_request_s=3.0, restarts_at_request=3)) as server:
        for _ in range(4):
            chat(server, A)
    assert waits == [3.0, 3.0]


def test_a_restart_starts_counting_anew() -> None:
    with double("vllm", faults=Faults(restarts_at_request=3)) as server:
        pages = []
        for _ in range(3):
            chat(server, A)
            pages.append((counted(server)[0], server.tally.started_at_s))
    assert pages[0][0] == pages[2][0] != pages[1][0]
    assert pages[0][1] == pages[1][1] < pages[2][1]


def test_a_strangers_tokens_are_counted_and_never_ours() -> None:
    with double("vllm", flags=FLAGS["vllm"], faults=Faults(foreign_tokens=100)) as server:
        ours = [chat(server, A).prompt_tokens for _ in range(2)]
        assert counted(server)[0] == sum(tokens or 0 for tokens in ours) + 2 * 100


def test_chunks_of_one_byte_cut_through_lines_and_characters_and_add_up_to_the_same_stream() -> None:
    body = body_of("Wörter, 語, 🗼: " + A, "Why?", stream=True, max_tokens=24)
    with double("vllm", model="тест", faults=Faults(split_bytes=1)) as server:
        cut = network_chunks(server, {**body, "model": "тест"})
    assert {len(chunk) for chunk in cut} == {1}
    whole = b"".join(cut)
    assert "тест".encode() in whole and whole.endswith(b"data: [DONE]\n\n")


def test_without_the_fault_a_chunk_is_an_event() -> None:
    with double("vllm") as server:
        chunks = network_chunks(server, body_of(A, "Why?", stream=True))
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in chunks) and len(chunks) > 3


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("html-errors", 502, "<title>502 Bad Gateway</title>"),
        ("unauthorized", 401, "Unauthorized"),
        ("rate-limited", 429, "Rate limit reached"),
        ("loading", 503, "Loading model"),
        ("refuse=temperature", 400, "Unsupported parameter: 'temperature'"),
        ("refuse", 400, "Use 'max_completion_tokens' instead"),
        ("refuse=system", 400, "System role not supported"),
        ("refuse=stream_options", 400, "Unsupported parameter: 'stream_options'"),
        ("refuse-silently=temperature", 400, "Bad Request"),
    ],
)
def test_an_error_comes_with_its_status_and_is_not_computed(name: str, status: int, words: str) -> None:
    with double("vllm", faults=faults_of([name])) as server:
        heard = chat(server, A)
        assert (heard.status, words in heard.raw.decode()) == (status, True)
        assert counted(server) == (0, 0)
        assert get(server, "/health").status_code == 200


def test_an_empty_body_is_one() -> None:
    with double("vllm", faults=faults_of(["empty"])) as server:
        response = requests.post(f"{server.base_url}/chat/completions", json=body_of(A, "Why?"), timeout=30)
    assert (response.status_code, response.content) == (200, b"")


def test_an_error_may_come_at_one_request_alone() -> None:
    with double("vllm", faults=Faults(error="rate_limited", error_at_request=2)) as server:
        assert [chat(server, A).status for _ in range(3)] == [200, 429, 200]


def test_a_field_that_is_not_used_is_not_refused() -> None:
    with double("vllm", faults=Faults(refused_fields=("seed", "max_tokens"))) as server:
        body = body_of(A, "Why?", max_completion_tokens=4)
        del body["max_tokens"]
        assert requests.post(f"{server.base_url}/chat/completions", json=body, timeout=30).status_code == 200


@pytest.mark.parametrize(("name", "received", "patience_s"), [("hang", 0, 0.2), ("hang-mid-stream", 1, 1.5)])
def test_a_hanging_request_holds_up_nobody_else(name: str, received: int, patience_s: float) -> None:
    with double("vllm", faults=faults_of([name])) as server:
        got = []
        url, body = f"{server.base_url}/chat/completions", body_of(A, "Why?", stream=True)
        with (
            pytest.raises(requests.exceptions.RequestException),
            requests.post(url, json=body, timeout=patience_s, stream=True) as response,
        ):
            got.extend(response.iter_content(None))
        assert len(got) == received
        assert chat(server, A).status == 200


def test_a_client_that_leaves_gives_back_the_only_slot() -> None:
    with double("llama-server", faults=Faults(one_slot=True)) as server:
        url, body = f"{server.base_url}/chat/completions", body_of(A, "Why?", stream=True, max_tokens=4000)
        with requests.post(url, json=body, timeout=30, stream=True) as response:
            next(response.iter_content(None))
        assert chat(server, B).status == 200


def test_two_chats_that_come_at_once_share_the_only_slot_one_after_the_other() -> None:
    with double("llama-server", faults=Faults(one_slot=True)) as server:
        heard: list[int] = []
        threads = [
            threading.Thread(target=lambda text=text: heard.append(chat(server, text).status)) for text in (A, B)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert heard == [200, 200] and server.engine.restored_tokens < 16


@pytest.mark.parametrize(
    ("name", "flags", "is_kept"),
    [
        ("llama-server", ["--parallel", "2", "--cache-ram", "0"], False),  # the template's head is 12 % alike: one slot
        ("llama-server", ["--parallel", "2", "--cache-ram", "0", "--slot-prompt-similarity", "0.5"], True),
        ("llama-server", ["--parallel", "1"], True),
        ("llama-server", ["--parallel", "1", "--cache-ram", "0"], False),
        ("mlx-lm", ["--prompt-cache-size", "2"], True),
        ("mlx-lm", ["--prompt-cache-size", "1"], False),
        ("vllm", ["--num-gpu-blocks-override", "8"], True),
        ("vllm", ["--num-gpu-blocks-override", "4"], False),
    ],
)
def test_a_servers_own_flags_decide_whether_a_chat_survives_another(name: str, flags: list[str], is_kept: bool) -> None:
    with double(name, flags=FLAGS[name] + flags) as server:
        *_, back = [chat(server, system) for system in (A, B, A)]
    assert ((back.cached_tokens or 0) >= 32) is is_kept


NO_SENSE: list[dict[str, Any]] = [
    {"messages": []},
    {"messages": "hi"},
    {"max_tokens": -1},
    {"max_tokens": 9000},
    {"temperature": "hot"},
    {"cache_salt": 7},
]


@pytest.mark.parametrize("name", FLAGS)
def test_a_request_that_makes_no_sense_is_refused_and_the_next_one_answered(name: str) -> None:
    with double(name) as server:
        url = f"{server.base_url}/chat/completions"
        refused = [requests.post(url, json=body_of(A, "Why?") | wrong, timeout=30).status_code for wrong in NO_SENSE]
        assert refused == [400] * len(NO_SENSE)
        assert post(server, "/detokenize", {"tokens": ["x"]}).status_code == (404 if name == "mlx-lm" else 400)
        assert chat(server, A).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"counters": "loud"},
        {"usage": ""},
        {"error": "teapot"},
        {"line_end": "\t"},
        {"pool_tokens": 0},
        {"split_bytes": True},
        {"restarts_at_request": 1.5},
        {"computed_token_delay_s": -1},
        {"slow_first_request_s": float("nan")},
        {"foreign_tokens": -1},
        {"refused_fields": ("messages",)},
        {"refused_fields": "seed"},
        {"hangs_mid_stream": True},
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(wrong: dict[str, Any]) -> None:
    with pytest.raises(DoubleError, match=f"{next(iter(wrong))}="):
        Faults(**wrong)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (["no-such"], "fault 'no-such' is not known"),
        (["salted=2"], "fault salted takes no value"),
        (["delay=fast"], "'fast' is no float"),
        (["delay=1", "delay=2"], "another value than a fault before it"),
        (["refuse=messages"], "refused_fields="),
    ],
)
def test_a_wrong_name_says_what_would_be_right(named: list[str], words: str) -> None:
    with pytest.raises(DoubleError, match=words):
        faults_of(named)


def test_names_add_up_to_one_set_of_faults() -> None:
    faults = faults_of(["one-slot", "delay=0.25", "refuse=seed,stream"])
    assert faults == Faults(one_slot=True, computed_token_delay_s=0.25, refused_fields=("seed", "stream"))
    assert names_in(faults) == ["one_slot=True", "computed_token_delay_s=0.25", "refused_fields=('seed', 'stream')"]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (lambda: double("tgi"), "engine 'tgi' has no double: choose one of vllm, sglang"),
        (lambda: double("vllm", flags=["--metrics"]), "vllm: unrecognized arguments: --metrics"),
        (lambda: double("vllm", flags=["--block-size", "0"]), "'0' is no whole number of 1 or more"),
        (lambda: double("mlx-lm", port=70000), "port 70000 cannot be used"),
        (lambda: double("sglang", faults=Faults(pool_tokens=4)), "the server's own first request failed"),
    ],
)
def test_a_double_that_cannot_start_says_why(start: Callable[[], Any], words: str) -> None:
    with pytest.raises(DoubleError, match=words), start():
        pass
