"""Strict reading: every fault by its line, with what to do, and a file that stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labbook.check import check
from labbook.cli import main as labbook
from labbook.record import to_line
from labbook.record_check import faults_of
from tests.labbook.examples import cold_warm


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labbook.md"


def faults(path: Path, content: bytes) -> list[tuple[int, str]]:
    path.write_bytes(content)
    found = [(fault.line_number, fault.what) for fault in check(path)]
    assert path.read_bytes() == content
    return found


def test_a_sound_notebook_has_no_fault(path: Path) -> None:
    lines = [
        "# Title",
        "",
        "```json",
        "{",
        '  "id": 7,',
        "}",
        "```",
        "{ not json",
        to_line(cold_warm()),
        '{"id": 1}',
        "",
    ]
    assert faults(path, "\n".join(lines).encode()) == []


def test_a_sound_last_record_without_a_newline_is_no_fault(path: Path) -> None:
    assert faults(path, b'{"id":1}') == []


@pytest.mark.parametrize(
    ("content", "line_number", "words"),
    [
        (b'{"id":1}\n{"id":', 2, "not JSON"),
        (b'{"id":1}\n{"ratio": NaN}\n', 2, "NaN is not JSON"),
        (b'{"ratio": 1e999}\n', 1, "1e999 is too large"),
        (b'\xef\xbb\xbf{"id":1}\n', 1, "a byte order mark"),
        (b'{"id":1}\n\xef\xbb\xbf{"id":2}\n', 2, "a byte order mark"),
        (b'# T\r\n{"id":1}\n', 1, "this line ends in CRLF"),
        (b'# T\n{"id":1}\r\n{"id":2}\r\n\r\n', 2, "this and 2 other lines end in CRLF"),
        (b'# T\r{"id":1}\n', 1, "this line ends in a lone CR"),
        (b'{"id":1,"id":2}\n', 1, "the key 'id' stands twice"),
        (b'{"a":{"b":1,"b":1}}\n', 1, "the key 'b' stands twice"),
        (b'{"a": "\xff"}\n', 1, "not UTF-8"),
        (b'```json\n{"id":\n', 1, "a code block begins here and never ends"),
        ('{"id":1}\n'.encode("utf-16"), 1, "the file is UTF-16"),
        (b'{"version":2}\n', 1, "version 2 is not known here"),
        (b'{"version":"1"}\n', 1, "version is '1'"),
    ],
)
def test_one_fault_is_told_by_its_line(content: bytes, line_number: int, words: str, path: Path) -> None:
    (found,) = faults(path, content)
    assert found[0] == line_number and words in found[1]


def test_every_fault_is_told_in_the_order_of_lines(path: Path) -> None:
    told = faults(path, b'{"a":\n{"id":1}\n{"b":NaN}\n{"c":1,"c":1}\n{"d"\n')
    assert [line for line, _ in told] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cold_s": "4.0"}, "cold_s is '4.0', where a number of seconds"),
        ({"cold_s": -1}, "cold_s is -1"),
        ({"cold_s": True}, "cold_s is True"),
        ({"prompt_tokens": 1.5}, "prompt_tokens is 1.5, where a whole number"),
        ({"label": 7}, "label is 7, where a text"),
        ({"requests": {}}, "requests is {}, where a list"),
        ({"requests": [7]}, "requests[0] is 7, where an object"),
        ({"requests": [{"cached_tokens": 9, "prompt_tokens": 8}]}, "9 cached of 8 prompt tokens, which cannot be"),
        ({"cache_metrics_delta": {"hits_tokens": 9, "queries_tokens": 8}}, "9 hits of 8 queries, which cannot be"),
        ({"warm_s": 0.2}, "warm_s is 0.2, where an object"),
        ({"warm_s": {"count": 1, "p50": None, "mean": 1, "min": 1, "max": 1}}, "at least 0 in p50"),
        ({"warm_s": {"count": 3, "p50": 5, "mean": 2, "min": 1, "max": 3}}, "the median 5 outside of 1 to 3"),
        ({"warm_over_cold_interval": {"low": 0.1, "high": 0.2}}, "where an object with low, value and high is meant"),
        ({"warm_over_cold_interval": {"low": 2, "value": 1, "high": 3}}, "the value 1 outside of 2 to 3"),
        ({"identity": "m1"}, "identity is 'm1', where an object"),
        ({"recorded_at": "yesterday"}, "recorded_at is 'yesterday', where a time such as"),
        ({"verdict": "fast"}, "verdict is 'fast', where one of reused, not_reused"),
        ({"verdict_reason": ""}, "the verdict 'reused' has no verdict_reason"),
        ({"verdict": "not_reused"}, "the verdict is not_reused, and no signal supports that"),
    ],
)
def test_what_cannot_be_in_a_record_is_named_with_its_value(values: dict[str, Any], words: str) -> None:
    (fault,) = faults_of(cold_warm(**values))
    assert words in fault


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (None, "signals.clock is missing"),
        ({"value": None, "supports": None, "why": ""}, "signals.clock is absent and does not say why"),
        ({"value": 1, "supports": "fast", "why": "x"}, "signals.clock.supports is 'fast'"),
        (
            {"value": None, "supports": "reused", "why": "x"},
            "signals.clock is absent and supports 'reused' all the same",
        ),
    ],
)
def test_a_signal_tells_a_value_or_why_it_has_none(clock: Any, words: str) -> None:
    record = cold_warm()
    record["signals"]["clock"] = clock
    (fault,) = faults_of(record)
    assert words in fault


def test_an_inconclusive_verdict_needs_no_support() -> None:
    record = cold_warm(verdict="inconclusive")
    for signal in record["signals"].values():
        signal["supports"] = None
    assert faults_of(record) == []


def test_records_of_other_labs_have_words_of_their_own() -> None:
    assert faults_of({"lab": "course", "verdict": "supported", "signals": 7, "version": 1}) == []
    assert len(faults_of({"lab": "course", "version": 99})) == 1


def test_what_the_instrument_writes_is_sound(serve: Any) -> None:
    from labbook.measure import measure

    assert faults_of(measure(serve().url, prefix_words=60, timeout_s=10.0)) == []


def test_the_command_exits_1_for_a_fault_and_0_for_none(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(b'{"id":1}\n{"id":')
    assert labbook(["check", "--labbook", str(path)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}, line 2: not JSON: ") and "begin the line with a word" in first
    assert last == f"{path}: 1 record, 1 fault"
    path.write_bytes(b'{"id":1}\n')
    assert labbook(["check", "--labbook", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"records": 1, "faults": []}
    assert labbook(["check", "--labbook", str(path.with_name("none.md"))]) == 1
