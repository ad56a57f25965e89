"""Prompt-cache files of mlx-lm: it continues from ours with the same text, and what we take in is verified first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from minivllm.backend import mx

# isort: split
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import RotatingKVCache, make_prompt_cache, save_prompt_cache
from mlx_lm.utils import load_model as load_mlx_model

from minivllm.cache.slot_errors import SlotFileError
from minivllm.cli import main
from minivllm.models.registry import resolve
from minivllm.prompt_cache import export_prompt_cache, import_prompt_cache, open_user_turn, read_prompt_cache
from tests.engine.conftest import loaded

MakeLLM = Callable[..., LLM]
TEXT = "The lighthouse keeper writes one page a day. Every page begins where the page before it ended."
QUESTION = " What is a page?"
GREEDY = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)


@pytest.fixture(scope="module")
def mlx_model() -> Any:
    return load_mlx_model(resolve("tiny"))[0]


def mlx_cache_file(path: Path, model: Any, token_ids: list[int], **quantized: int) -> Path:
    """As `mlx_lm.cache_prompt` makes it."""
    cache = make_prompt_cache(model)
    for _ in generate_step(mx.array(token_ids), model, max_tokens=0, prompt_cache=cache, **quantized):
        pass
    save_prompt_cache(str(path), cache, {"model": str(resolve("tiny")), "tokenizer_config": "{}"})
    return path


def test_mlx_lm_generate_continues_from_an_exported_file_with_the_same_greedy_text(
    make_llm: MakeLLM, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    file = tmp_path / "cache.safetensors"
    assert main(["export-prompt-cache", str(file), "--model", "tiny", "--prompt", str(tmp_path / "text.txt")]) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    text = mlx_lm_generate(file, QUESTION)
    llm = make_llm()
    whole = llm.tokenizer.render_chat([{"role": "user", "content": TEXT + QUESTION}])
    begin = llm.tokenizer.render_chat(
        [{"role": "user", "content": TEXT}], add_generation_prompt=False, continue_final_message=True
    )
    token_ids = llm.tokenizer.encode(begin, add_special_tokens=False)
    token_ids += llm.tokenizer.encode(whole[len(begin) :], add_special_tokens=False)
    assert len(text) > 12
    assert text == llm.generate([token_ids], GREEDY)[0].text.strip()


def mlx_lm_generate(file: Path, prompt: str, *options: str) -> str:
    fixed = ["--max-tokens", "12", "--temp", "0", "--verbose", "False"]
    command = [sys.executable, "-m", "mlx_lm", "generate", "--prompt-cache-file", str(file), "--prompt", prompt]
    done = subprocess.run([*command, *fixed, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_finished_slot_goes_on_in_mlx_lm_without_the_chat_template(make_llm: MakeLLM, tmp_path: Path) -> None:
    llm = make_llm(page_size=8)
    first = llm.chat([{"role": "user", "content": TEXT}], GREEDY)
    llm.slots[0].save(tmp_path / "slot")
    file = tmp_path / "cache.safetensors"
    assert main(["export-prompt-cache", str(file), "--model", "tiny", "--slot-file", str(tmp_path / "slot")]) == 0
    turn = f"{llm.tokenizer.decode(first.token_ids[-1:])}<|end|><|turn|>user And then?<|end|><|turn|>assistant"
    held = llm.slots[0].token_ids
    following = [*held, *llm.tokenizer.encode(turn)]  # mlx-lm, too, begins an untemplated text with BOS
    text = mlx_lm_generate(file, turn, "--ignore-chat-template")
    assert text == llm.generate([following], GREEDY)[0].text.strip()


@pytest.mark.parametrize("bits", [None, 8, 4])
def test_an_exported_file_is_taken_in_again_exactly(make_llm: MakeLLM, tmp_path: Path, bits: int | None) -> None:
    settings = {"kv_bits": bits, "kv_group_size": 32}
    llm, other = make_llm(**settings), make_llm(**settings)
    prompt = open_user_turn(llm.tokenizer, TEXT)
    first = llm.generate([prompt], SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True))[0]
    file = tmp_path / "cache.safetensors"
    assert export_prompt_cache(llm.slots[0], file, "tiny", llm.engine.layout.kv_format) == len(prompt)
    cache = read_prompt_cache(file)
    assert (cache.model, cache.num_tokens, cache.bits) == ("tiny", len(prompt), bits)
    import_prompt_cache(other.slots[1], cache, prompt)
    expected, taken_in = (one.slots[at].take_out() for one, at in ((llm, 0), (other, 1)))
    assert taken_in.token_ids == expected.token_ids
    for name, array in expected.arrays.items():
        assert np.array_equal(np.array(array), np.array(taken_in.arrays[name])), name
    following = [*prompt, *first.token_ids, 9]
    outputs = [one.generate([following], GREEDY)[0] for one in (llm, other)]
    assert outputs[0].token_ids == outputs[1].token_ids
    assert outputs[1].metrics.cached_tokens == len(prompt)


@pytest.mark.parametrize(
    "quantized", [{}, {"kv_bits": 8, "kv_group_size": 32, "quantized_kv_start": 0}], ids=["full", "8bit"]
)
def test_a_file_that_mlx_lm_made_becomes_a_slot_file(
    make_llm: MakeLLM, tmp_path: Path, mlx_model: Any, quantized: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = open_user_turn(loaded("tiny").tokenizer, TEXT)
    file = mlx_cache_file(tmp_path / "theirs.safetensors", mlx_model, prompt, **quantized)
    command = ["import-prompt-cache", str(file), "--model", "tiny", "--output", str(tmp_path / "slot")]
    assert main([*command, "--prompt", TEXT]) == 0, capsys.readouterr().err
    settings = {name: quantized[name] for name in ("kv_bits", "kv_group_size") if name in quantized}
    llm = make_llm(**settings)
    assert llm.slots[0].restore(tmp_path / "slot").num_tokens == len(prompt)
    assert llm.generate([[*prompt, 9]], GREEDY)[0].metrics.cached_tokens == len(prompt)
    assert main([*command, "--prompt", TEXT + "!"]) == 1
    assert "tokens and the text makes" in capsys.readouterr().err


def test_a_false_claim_is_refused_wherever_it_is_false_and_changes_nothing(
    make_llm: MakeLLM, tmp_path: Path, mlx_model: Any
) -> None:
    llm = make_llm()
    prompt = open_user_turn(llm.tokenizer, TEXT)
    cache = read_prompt_cache(mlx_cache_file(tmp_path / "a.safetensors", mlx_model, prompt))
    for position in (0, len(prompt) // 2, len(prompt) - 1):
        claimed = list(prompt)
        claimed[position] = 77
        with pytest.raises(SlotFileError, match=f"of position {position} in layer 0 differ by"):
            import_prompt_cache(llm.slots[0], cache, claimed)
    wrong_later = {**cache.arrays, "layers.1.values.full": cache.arrays["layers.1.values.full"] * 1.5}
    import dataclasses

    with pytest.raises(SlotFileError, match="in layer 1 differ"):
        import_prompt_cache(llm.slots[0], dataclasses.replace(cache, arrays=wrong_later), prompt)
    assert llm.stats()["pages_free"] == llm.stats()["pages_total"]
    assert llm.slots[0].token_ids == ()


def test_what_is_no_prompt_cache_file_is_refused_in_words(make_llm: MakeLLM, tmp_path: Path, mlx_model: Any) -> None:
    mx.save_safetensors(str(tmp_path / "weights.safetensors"), {"a": mx.zeros((3,))}, {"format": "mlx"})
    save_prompt_cache(str(tmp_path / "rotating.safetensors"), make_rotating(mlx_model), {"model": "m"})
    for name, reason in (
        ("weights.safetensors", "is no prompt-cache file of mlx-lm"),
        ("absent.safetensors", "is no prompt-cache file of mlx-lm"),
        ("rotating.safetensors", "RotatingKVCache"),
    ):
        with pytest.raises(SlotFileError, match=reason):
            read_prompt_cache(tmp_path / name)
    prompt = open_user_turn(loaded("tiny").tokenizer, TEXT)
    cache = read_prompt_cache(mlx_cache_file(tmp_path / "a.safetensors", mlx_model, prompt))
    with pytest.raises(SlotFileError, match=r"the file has kv_bits None .* this engine kv_bits 8"):
        import_prompt_cache(make_llm(kv_bits=8, kv_group_size=32).slots[0], cache, prompt)


def make_rotating(model: Any) -> list[Any]:
    cache = [RotatingKVCache(max_size=64) for _ in model.layers]
    for _ in generate_step(mx.array([5, 6, 7]), model, max_tokens=0, prompt_cache=cache):
        pass
    return cache
