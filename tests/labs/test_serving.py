"""The server that a notebook or `make measure` starts: it answers, and nothing leaves it behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from labs.kit.counters import counters_text
from labs.kit.parameters import checkout
from labs.kit.serving import Server, ServingError, running_server, start_server

PATIENCE_S = 60.0


def is_listening(base_url: str) -> bool:
    address = urlsplit(base_url)
    try:
        socket.create_connection((address.hostname or "", address.port or 0), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def wait_until_gone(base_url: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while is_listening(base_url):
        assert time.monotonic() < deadline_s, f"the server at {base_url} is still there"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("tiny", is_quiet=True) as running:
        yield running


def test_a_started_server_listens_on_loopback_and_is_ready(server: Server) -> None:
    assert urlsplit(server.base_url).hostname == "127.0.0.1"
    with urllib.request.urlopen(f"{server.base_url}/models") as answer:
        assert b'"tiny"' in answer.read()


def test_a_fresh_server_has_counted_nothing(server: Server) -> None:
    assert counters_text(server.base_url, server.model) == "queries 0 tokens, hits 0 tokens"


def test_a_server_of_yours_is_used_and_never_stopped(server: Server) -> None:
    with running_server(None, server.base_url) as yours:
        assert yours.base_url == server.base_url and not yours.is_ours
    assert is_listening(server.base_url)


def test_a_server_that_is_not_there_has_no_counters() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert counters_text(f"http://127.0.0.1:{port}/v1", None).startswith("no counters: cannot reach")


def test_an_error_in_the_block_stops_the_server_and_removes_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), running_server("tiny", flags=["--no-prefix-cache"]) as running:
        assert running.log_path is not None and running.log_path.exists()
        raise ZeroDivisionError
    assert not is_listening(running.base_url) and not running.log_path.exists()
    assert "minivllm serving tiny" in capsys.readouterr().err


def test_a_server_that_dies_at_the_start_shows_the_end_of_its_log() -> None:
    with pytest.raises(ServingError, match=r"status 1(?s:.*)model 'no-such-model' is not known"):
        start_server("no-such-model", is_quiet=True)


def test_a_wrong_flag_is_told_in_the_servers_words() -> None:
    with pytest.raises(ServingError, match=r"status 2(?s:.*)--no-such-flag"):
        start_server("tiny", flags=["--no-such-flag"], is_quiet=True)


def test_no_model_is_refused_before_anything_starts() -> None:
    with pytest.raises(ServingError, match="no model was named"):
        start_server(None)


def test_the_server_ends_when_its_starter_is_killed() -> None:
    script = "from labs.kit.serving import start_server; import time\n"
    script += "print(start_server('tiny', is_quiet=True).base_url, flush=True); time.sleep(600)"
    starter = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=checkout(), env=dict(os.environ)
    )
    assert starter.stdout is not None
    base_url = starter.stdout.readline().strip()
    assert is_listening(base_url)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    wait_until_gone(base_url)
