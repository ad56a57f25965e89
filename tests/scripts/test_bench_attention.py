"""The benchmark of attention, with the kernel in the runner: it counts right, compares, and claims nothing of Metal."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from labbook.book import Labbook
from minivllm.backend import is_cpu
from scripts.bench_attention.subjects import Shape

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench-attention.py"
WAYS = {"paged kernel": 1, "gather, then fused": 3, "mlx-lm, contiguous": 1}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_attention_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not is_cpu, reason="on a GPU this would measure")
def test_a_quick_run_takes_all_three_ways_and_says_that_no_metal_was_there(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = tmp_path / "labbook.md"
    assert script.main(["--quick", "--repeats", "2", "--contexts", "17", "33", "--labbook", str(book)]) == 0
    records = Labbook(book).records(strict=True)
    assert [(record["context_tokens"], record["subject"]) for record in records] == [
        (context, way) for context in (17, 33) for way in WAYS
    ]
    for record in records:
        # 2 layers, 2 (keys and values), 3 KV heads of 64 elements, 2 bytes each
        assert record["moved_bytes"] == WAYS[record["subject"]] * record["context_tokens"] * 2 * 2 * 3 * 64 * 2
        assert len(record["step_s"]) == 2 and record["kernel_ran_on"] == "CPU, in the runner"
    table = capsys.readouterr().out
    assert "They say nothing about Metal." in table
    assert table.count("| paged kernel |") == 2


@pytest.mark.skipif(not is_cpu, reason="on a GPU this would measure")
def test_without_an_apple_gpu_a_full_run_is_refused_before_anything_is_measured(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--labbook", str(tmp_path / "labbook.md")]) == 2
    assert "--quick shows that the script works" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_record_prints_as_json_too(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "_measure", lambda options: [{"step_s": [0.5]}])
    assert script.main(["--json", "--labbook", str(tmp_path / "labbook.md")]) == 0
    assert json.loads(capsys.readouterr().out) == [{"step_s": [0.5]}]


def test_bytes_are_those_of_all_rows_layers_keys_and_values() -> None:
    assert Shape(rows=2, layers=3, heads=4, kv_heads=2, head_dim=64, dtype="float32").kv_bytes(10) == 2 * 3 * 10 * 1024


@pytest.mark.parametrize("arguments", [["--repeats", "0"], ["--contexts", "0"], ["--rows", "0"]])
def test_sizes_below_one_are_refused(script: ModuleType, arguments: list[str], capsys) -> None:
    assert script.main(arguments) == 2
    assert capsys.readouterr().err.startswith("bench-attention: ")
