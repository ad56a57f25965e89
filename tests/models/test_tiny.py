"""The tiny model is the same everywhere, and wrong keys or values show in what it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minivllm.backend import mx
from minivllm.models.loading import load_model
from minivllm.models.tiny import write_tiny
from tests.models.folders import distance, logits, oracle_logits

pytestmark = pytest.mark.usefixtures("own_home")

PROMPT = [0, *(3 + (7 * index * index + 11 * index) % 500 for index in range(63))]


def test_another_process_makes_the_same_bytes(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    write_tiny(here)
    code = "import sys, pathlib; from minivllm.models.tiny import write_tiny; write_tiny(pathlib.Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, str(there)], check=True, env=environment)
    names = sorted(file.name for file in here.iterdir())
    assert names == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    for name in names:
        assert (here / name).read_bytes() == (there / name).read_bytes(), name


def test_it_gives_the_logits_of_mlx_lm() -> None:
    loaded = load_model("tiny")
    assert distance(logits(loaded, PROMPT), oracle_logits(loaded.path, PROMPT)) < 2e-5


def test_tokens_all_along_the_prompt_show_in_the_last_logits() -> None:
    loaded = load_model("tiny")
    last = logits(loaded, PROMPT)[-1]
    for index in [*range(0, len(PROMPT), 5), len(PROMPT) - 1]:
        changed = list(PROMPT)
        changed[index] = (changed[index] + 100) % 500 + 3
        assert mx.abs(logits(loaded, changed)[-1] - last).max().item() > 0.05, index


def test_its_greedy_text_varies_and_depends_on_the_prompt() -> None:
    loaded = load_model("tiny")
    texts = set()
    for word in ("page", "ship", "cache"):
        ids = loaded.tokenizer.encode(f"Once upon a {word}")
        prompt_tokens = len(ids)
        for _ in range(24):
            ids.append(int(mx.argmax(logits(loaded, ids)[-1]).item()))
        written = ids[prompt_tokens:]
        assert len(set(written)) > 8 and not loaded.tokenizer.eos_token_ids & set(written)
        assert loaded.tokenizer.decode(written).isprintable()
        texts.add(tuple(written))
    assert len(texts) == 3


def test_it_fits_what_the_engine_offers() -> None:
    spec = load_model("tiny").spec
    assert (spec.num_layers, spec.num_heads, spec.num_kv_heads, spec.head_dim) == (2, 4, 2, 32)
    assert spec.max_position_embeddings >= 2048
