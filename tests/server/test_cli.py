"""The command line: flags, the line that says ready, and clear endings."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import httpx
import pytest

from minivllm import cli
from minivllm.config import CHOICES, ConfigError, EngineConfig
from minivllm.server import flags
from minivllm.server.serving import Address, ServeError, _warn_when_exposed, bind
from tests.server.live import CHAT, WAIT_S

COMMAND = [sys.executable, "-m", "minivllm.cli"]


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [*COMMAND, "serve", "--model", "tiny", "--port", "0", "--num-pages", "64", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"minivllm serving (\S+) at (http://127\.0\.0\.1:\d+)\n", line)
            assert found, line
            yield process, found[2]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_when_it_is_ready_and_ends_cleanly_on_a_signal(number: signal.Signals) -> None:
    with serving("--served-model-name", "mine") as (process, url):
        assert httpx.get(f"{url}/health").status_code == 200
        answer = httpx.post(f"{url}/v1/chat/completions", json={"model": "mine", **CHAT}, timeout=WAIT_S)
        assert answer.json()["model"] == "mine"
        body = {"prompt": [7], "max_tokens": 900, "stream": True, "ignore_eos": True}
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=WAIT_S) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(number)
            rest = [line for line in lines if line]
        assert "shutting down" in rest[-1]
        assert process.wait(WAIT_S) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_busy_port_is_named_and_the_status_is_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        command = [*COMMAND, "serve", "--model", "tiny", "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert f"port {port} on 127.0.0.1 is busy" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_model_that_cannot_be_loaded_ends_the_server_with_status_1() -> None:
    command = [*COMMAND, "serve", "--model", "/no/such/folder", "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "/no/such/folder" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--kv-cache-bytes", "10"], "kv_cache_bytes=10 is below one page"),
        (["--max-model-len", "99999999"], "max_model_len=99999999"),
        (["--host", ""], "--host '' is empty"),
    ],
)
def test_a_setting_that_does_not_suit_is_wrong_usage_in_one_sentence(options: list[str], named: str) -> None:
    command = [*COMMAND, "serve", "--model", "tiny", "--port", "0", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == cli.WRONG_USAGE
    assert f"minivllm: {named}" in ended.stderr
    assert "Traceback" not in ended.stderr and "thread died" not in ended.stderr


@pytest.mark.parametrize("value", ["~nobodyx/y", "/dev/null/y", "/proc/x"])
def test_a_home_that_cannot_be_is_named_and_the_status_is_1(value: str) -> None:
    command = [*COMMAND, "serve", "--model", "tiny", "--port", "0"]
    environment = {**os.environ, "MINIVLLM_HOME": value}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert ended.returncode == cli.FAILED
    assert value in ended.stderr and "MINIVLLM_HOME" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("key", ["schlüssel", "a\tb", "鍵"])
def test_a_key_that_no_header_carries_is_refused_at_the_start(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAB_KEY", key)
    assert cli.main(["serve", "--model", "tiny", "--port", "0", "--api-key-env", "LAB_KEY"]) == cli.WRONG_USAGE
    assert "no HTTP header carries" in capsys.readouterr().err


def test_a_key_comes_from_the_environment_and_a_missing_one_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    assert cli.main(["serve", "--model", "tiny", "--api-key-env", "LAB_KEY"]) == cli.WRONG_USAGE
    assert "LAB_KEY, which is unset or empty" in capsys.readouterr().err
    monkeypatch.setenv("LAB_KEY", "sesame")
    assert "LAB_KEY" in os.environ
    with serving("--api-key-env", "LAB_KEY") as (_, url):
        assert httpx.get(f"{url}/v1/models").status_code == 401
        assert httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer sesame"}).status_code == 200


def test_every_setting_of_the_engine_is_a_flag_with_a_help_text() -> None:
    names = [field.name for field in fields(EngineConfig)]
    assert list(flags.HELP) == names
    parser = cli._parser()
    plain = parser.parse_args(["serve"])
    assert flags.engine_config(plain) == EngineConfig()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--no-prefix-cache"], {"prefix_cache": False}),
        (["--debug-poison-pages"], {"debug_poison_pages": True}),
        (["--num-pages", "7", "--page-size", "4"], {"num_pages": 7, "page_size": 4}),
        (["--prefix-ttl-s", "1.5"], {"prefix_ttl_s": 1.5}),
        *(
            (["--" + name.replace("_", "-"), value], {name: value})
            for name, values in CHOICES.items()
            for value in values
        ),
    ],
)
def test_a_flag_sets_its_field(options: list[str], expected: dict[str, object]) -> None:
    assert flags.engine_config(cli._parser().parse_args(["serve", *options])) == EngineConfig(**expected)  # type: ignore[arg-type]


def test_settings_that_contradict_each_other_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--num-pages", "4", "--kv-cache-bytes", "4096"]) == cli.WRONG_USAGE
    assert "num_pages=4" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "--port", "70000"])
    assert ended.value.code == cli.WRONG_USAGE


def test_binding_beyond_loopback_warns(capsys: pytest.CaptureFixture[str]) -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        _warn_when_exposed(Address(host), None)
    assert capsys.readouterr().err == ""
    for host in ("0.0.0.0", "::", "192.168.1.5", "box.example"):
        _warn_when_exposed(Address(host), None)
        assert "reachable from other machines" in capsys.readouterr().err


def test_an_address_of_another_machine_is_refused_in_words() -> None:
    with pytest.raises(ServeError, match=r"192\.0\.2\.1 is no address of this machine"):
        bind(Address("192.0.2.1", 0))
    assert Address("::1", 80).url == "http://[::1]:80"


@pytest.mark.parametrize("host", ["nohost.invalid", "a..b", "x" * 70])
def test_a_host_that_cannot_be_resolved_is_refused_in_words(host: str) -> None:
    with pytest.raises(ServeError, match=rf"--host {re.escape(host)} cannot be resolved \(.+\): give 127\.0\.0\.1"):
        bind(Address(host, 0))


def test_an_empty_host_never_means_every_interface() -> None:
    for host in ("", " "):
        with pytest.raises(ConfigError, match="is empty: give 127"):
            Address(host)


def test_generate_prints_the_text_that_follows(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["generate", "--model", "tiny", "--num-pages", "8", "--max-tokens", "5", "The keeper"]
    assert cli.main(asked) == 0
    first = capsys.readouterr().out
    assert first.strip()
    assert cli.main(asked) == 0
    assert capsys.readouterr().out == first
    assert cli.main(["generate", "--model", "tiny", "--num-pages", "1", "The " * 40]) == cli.FAILED
    assert "page pool" in capsys.readouterr().err
