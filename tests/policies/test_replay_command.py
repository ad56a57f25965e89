"""`minivllm replay` as people and scripts call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labbook.book import Labbook
from minivllm.cli import main

# Four requests over blocks of 512 tokens: the second finds two of three, the third nothing, the last what is left.
LINES = [(0, 1536, [1, 2, 3]), (10, 1300, [1, 2, 4]), (20, 1024, [5, 6]), (3000, 1536, [1, 2, 3])]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "small.jsonl"
    rows = [
        {"timestamp": timestamp, "input_length": tokens, "output_length": 1, "hash_ids": ids}
        for timestamp, tokens, ids in LINES
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["replay", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    record: dict[str, Any] = json.loads(printed.out)
    return record


def test_it_prints_one_object_with_both_hit_ratios(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = replayed(capsys, trace, "--design", "block-hash", "--eviction", "lru", "--capacity", "100")
    assert record["hit_ratio_blocks"] == (2 + 3) / 11
    assert record["hit_ratio_tokens"] == (1024 + 1536) / (1536 + 1300 + 1024 + 1536)
    assert (record["evicted_blocks"], record["unreachable_blocks"], record["queried_blocks"]) == (0, 0, 11)
    assert record["trace"] == "small.jsonl"
    assert record["reuse_distance"]["first_uses"] == 6
    assert record["reuse_distance"]["reuses"] == 5


def test_a_small_capacity_evicts_and_belady_bounds_it(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    lru = replayed(capsys, trace, "--capacity", "4")
    assert (lru["hit_blocks"], lru["evicted_blocks"]) == (2 + 2, 3)  # 3 and 4 for 5 and 6; 6 for 3
    best = replayed(capsys, trace, "--capacity", "4", "--eviction", "belady")
    assert best["hit_blocks"] == 2 + 3


def test_a_publication_delay_makes_close_twins_miss(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(capsys, trace, "--publication-delay", "0.011")["hit_blocks"] == 3


def test_the_engines_own_index_gives_the_same_numbers(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours, engines = (replayed(capsys, trace, "--capacity", "3", "--design", name) for name in ("block-hash", "engine"))
    for name in ("hit_ratio_blocks", "hit_ratio_tokens", "evicted_blocks", "held_blocks"):
        assert ours[name] == engines[name]


def test_generated_traffic_is_cut_into_the_engines_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    traffic = ("workload:document:3", "--capacity", "100000")
    record = replayed(capsys, *traffic)
    assert record["block_tokens"] == 1
    assert record["reuse_distance"]["block_units"] == 16
    assert record["hit_blocks"] % 16 == 0 < record["hit_blocks"]
    assert replayed(capsys, *traffic, "--design", "radix")["hit_blocks"] >= record["hit_blocks"]


def test_a_sweep_has_every_design_and_is_drawn_and_recorded(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    figure, book = tmp_path / "sweep.png", tmp_path / "book.md"
    sizing = ("--kv-shape", "30,3,64", "--prefill-speed", "100")
    outputs = ("--figure", str(figure), "--labbook", str(book))
    record = replayed(capsys, trace, "--capacity", "8", "--sweep", *sizing, *outputs)
    rows = record["sweep"]
    assert {row["design"] for row in rows} == {"block-hash", "radix", "slot", "whole-cache", "file"}
    evictions = {row["eviction"] for row in rows if row["design"] == "block-hash"}
    assert evictions == {"lru", "lfu", "fifo", "length", "scan", "segmented", "belady"}
    assert sorted({row["capacity_blocks"] for row in rows}) == [1, 2, 4, 8, 16]
    best = {row["capacity_blocks"]: row["hit_blocks"] for row in rows if row["eviction"] == "belady"}
    assert all(row["hit_blocks"] <= best[row["capacity_blocks"]] for row in rows)
    assert rows[-1]["capacity_gib"] == 16 * 512 * 23_040 / 2**30
    assert rows[-1]["saved_prefill_s"] == rows[-1]["hit_tokens"] / 100
    assert figure.read_bytes().startswith(b"\x89PNG")
    told = figure.with_suffix(".txt").read_text(encoding="utf-8")
    assert "from 1 to 16 blocks of 512 tokens: block-hash belady 0.19 to 0.47" in told
    assert Labbook(book).select(lab="replay") == [record]


def test_a_person_gets_lines_and_a_table(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", trace, "--capacity", "8", "--sweep", "--kv-shape", "30,3,64", "--prefill-speed", "100"]) == 0
    printed = capsys.readouterr().out
    assert "4 requests, 11 blocks of 512 tokens, 5,396 tokens" in printed
    assert "hit ratio          0.4545 of blocks, 0.4744 of tokens" in printed
    table = {line[:18].strip(): line[18:].split() for line in printed.splitlines()}
    assert table["slot"][:2] == ["-", "-"]  # four slots need four blocks
    assert len(table["block-hash belady"]) == 5


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (["{trace}", "--capacity", "0"], 2, "'0' is no count"),
        (["{trace}", "--publication-delay", "-1"], 2, "give 0 or more seconds"),
        (["{trace}", "--kv-shape", "30x3x64"], 2, "give LAYERS,KV_HEADS,HEAD_DIM"),
        (["{trace}", "--eviction", "lfu", "--design", "slot"], 2, "leave out eviction"),
        (["{trace}", "--eviction", "belady", "--publication-delay", "1"], 2, "publication delay 0"),
        (["{trace}", "--block-size", "500"], 2, "a multiple of the traffic's blocks of 512"),
        (["{trace}", "--design", "radix", "--eviction", "lru-head-first"], 2, "cannot evict head-first"),
        (["{trace}", "--figure", "x.png"], 2, "give --sweep, too"),
        (["{trace}", "--sweep", "--figure", "x.pdf"], 2, "a file that ends in .png"),
        (["{trace}", "--sweep", "--figure", "nowhere/x.png"], 2, "in a folder that exists"),
        (["{trace}", "--model-config", "nowhere.json"], 2, "cannot read the model's config nowhere.json"),
        (["{trace}", "--labbook", "/nowhere/book.md"], 1, "/nowhere does not exist"),
        (["nowhere.jsonl"], 1, "no trace file at nowhere.jsonl"),
        (["workload:chatt"], 1, "did you mean 'chat'"),
        (["workload:chat:x"], 1, "the seed of 'workload:chat:x' is 'x'"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    trace: str, arguments: list[str], status: int, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        got = main(["replay", *(argument.format(trace=trace) for argument in arguments)])
    except SystemExit as left:
        got = left.code  # argparse
    printed = capsys.readouterr()
    assert (got, printed.out) == (status, "")
    assert named in printed.err


def test_a_trace_is_replayed_without_any_array_library(trace: str) -> None:
    blocked = "import sys; sys.modules.update({name: None for name in ('mlx', 'numpy', 'matplotlib')}); "
    script = blocked + f"from minivllm.cli import main; sys.exit(main(['replay', {trace!r}, '--json']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["hit_ratio_blocks"] == 5 / 11
