"""`python -m labs.kit.doubles`: a double for whoever teaches, started and stopped from a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
import requests

from labs.kit.doubles.__main__ import main
from labs.kit.doubles.presets import PRESETS
from labs.kit.parameters import checkout

COMMAND = [sys.executable, "-m", "labs.kit.doubles"]


def test_a_double_says_where_it_listens_answers_and_ends_with_status_0() -> None:
    arguments = [
        "vllm",
        "--json",
        "--fault",
        "one-slot",
        "--fault",
        "delay=0.001",
        "--",
        "--enable-prompt-tokens-details",
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout())}
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        models = requests.get(f"{told['base_url']}/models", timeout=30).json()
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)
        process.stdout.close()
    assert status == 0
    assert told["engine"] == "vllm" and told["flags"] == ["--enable-prompt-tokens-details"]
    assert told["faults"] == ["one_slot=True", "computed_token_delay_s=0.001"]
    assert models["data"][0]["id"] == told["model"] == "tiny"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vllm", "--fault", "no-such"], "fault 'no-such' is not known"),
        (["vllm", "--", "--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["vllm", "--port", "-1"], "port -1 cannot be used"),
    ],
)
def test_wrong_usage_is_told_with_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_the_faults_are_listed_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0].split("[")[0] for line in capsys.readouterr().out.splitlines()] == list(PRESETS)
    assert main(["--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["one-slot"]["one_slot"] is True
