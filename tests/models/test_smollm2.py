"""The real model: greedy text equals stock mlx-lm's, ids equal llama-server's. Uses the model in MINIVLLM_HOME."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlx_lm.generate import generate_step
from mlx_lm.utils import load_model as load_oracle

from minivllm.backend import mx
from minivllm.models.loading import LoadedModel, load_model
from tests.models.folders import logits

NUM_TOKENS = 6


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model("smollm2-135m")


def oracle_greedy(folder: Path, prompt: list[int]) -> list[int]:
    model, _ = load_oracle(folder)
    return [token for token, _ in generate_step(mx.array(prompt), model, max_tokens=NUM_TOKENS)]


def test_greedy_text_equals_that_of_mlx_lm(loaded: LoadedModel) -> None:
    prompt = loaded.tokenizer.encode("The capital of France is")
    ids = list(prompt)
    for _ in range(NUM_TOKENS):
        ids.append(int(mx.argmax(logits(loaded, ids)[-1]).item()))
    assert ids[len(prompt) :] == oracle_greedy(loaded.path, prompt)
    assert "Paris" in loaded.tokenizer.decode(ids)


def test_ids_equal_those_of_llama_server(loaded: LoadedModel) -> None:
    assert loaded.tokenizer.encode("Once upon a time") == [6403, 1980, 253, 655]


def test_chat_ids_equal_those_of_transformers(loaded: LoadedModel) -> None:
    from transformers import AutoTokenizer

    messages = [{"role": "user", "content": "What is 17 + 25?\n\n Ünïcode ☃"}]
    theirs = AutoTokenizer.from_pretrained(loaded.path).apply_chat_template(
        messages, add_generation_prompt=True, return_dict=False
    )
    assert loaded.tokenizer.encode_chat(messages) == list(theirs)


def test_it_has_the_shape_and_the_licence_of_the_original(loaded: LoadedModel) -> None:
    spec = loaded.spec
    assert (spec.num_layers, spec.num_heads, spec.num_kv_heads, spec.head_dim) == (30, 9, 3, 64)
    assert (spec.vocab_size, spec.rope_theta, spec.tie_word_embeddings) == (49152, 100000.0, True)
    assert loaded.tokenizer.eos_token_ids == {2} and not loaded.tokenizer.supports_tools
    assert "Apache License" in (loaded.path / "LICENSE").read_text()
