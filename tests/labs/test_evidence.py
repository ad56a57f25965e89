from __future__ import annotations

from typing import Any

import pytest

from labbook.engines import engine as engine_row
from labbook.errors import UsageError
from labs.kit.captured import captured, captured_table
from labs.kit.evidence import BLANK, evidence_form
from labs.kit.tracks import ENGINES, TRACKS, WAYS, commands, run_table, telling_table, way

RECORD: dict[str, Any] = {
    "engine": "vllm",
    "engine_version": "0.32.0",
    "model": "m",
    "environment": {"device": "Linux x86_64, 2 CPU cores"},
    "prompt_tokens": 160,
    "shared_prefix_tokens": 140,
    "cold_s": 0.4,
    "warm_s": {"p50": 0.05},
    "control_s": None,
    "verdict": "reused",
    "cache_metrics_delta": {"phases": {"warm": {"hits_tokens": 128.0, "queries_tokens": 160.0}}},
    "requests": [
        {"phase": "cold", "cached_tokens": 0},
        {"phase": "warm", "cached_tokens": 128},
        {"phase": "control", "cached_tokens": None},
    ],
}


def lines_of(form: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in form.splitlines())}


def test_a_blank_form_has_the_same_lines_as_a_filled_one_and_nothing_in_them() -> None:
    blank, filled = lines_of(evidence_form()), lines_of(evidence_form(RECORD, origin="here", started="vllm serve m"))
    assert blank.keys() == filled.keys() and set(blank.values()) == {BLANK}
    assert filled["counters, warm phase"] == "128 hits of 160 tokens"
    assert (filled["cold"], filled["warm, median"], filled["cached tokens, warm"]) == ("400 ms", "50 ms", "128")


def test_what_a_record_does_not_tell_is_said_to_be_missing_and_judgement_is_left_to_the_learner() -> None:
    filled = lines_of(evidence_form(RECORD, origin="here", started="vllm serve m"))
    assert (filled["changed prefix"], filled["cached tokens, changed"]) == ("not told", "not told")
    assert filled["what would change my mind"] == BLANK
    assert lines_of(evidence_form({}))["counters, warm phase"] == "not told"


def test_every_engine_has_a_way_on_every_track_and_options_in_the_engine_table() -> None:
    assert [(one.engine, one.track) for one in WAYS] == [(engine, track) for engine in ENGINES for track in TRACKS]
    for engine in ENGINES:
        assert engine_row(engine).turning("off")
    assert all(bool(one.command) == (one.run != "none") for one in WAYS)
    with pytest.raises(UsageError, match="plain CPU"):
        way("vllm", "a mainframe")


def test_only_what_was_seen_is_called_seen() -> None:
    """Captured: the engines of captured.json, all on a CPU. Here: mlx-lm, which a notebook starts."""
    seen = {(one.engine, one.track): one.run for one in WAYS if one.run in ("captured", "here")}
    assert set(seen) == {(one["engine"], "plain CPU") for one in captured()["engines"]}
    assert [pair for pair, run in seen.items() if run == "here"] == [("mlx-lm", "plain CPU")]


def test_the_tables_are_read_by_people() -> None:
    assert run_table().splitlines()[2].split() == ["sglang", "none", "not", "run", "not", "run", "not", "run"]
    assert "mlx-lm        always                          never: it has no metrics page" in telling_table()
    assert "off     --prompt-cache-size 0" in commands("plain CPU")
    assert "not among the platforms" in commands("Apple silicon")
    assert captured_table().splitlines()[1].split() == ["vllm", "0.32.0", "380", "0", "256", "124"]
