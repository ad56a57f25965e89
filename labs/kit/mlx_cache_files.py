"""What mlx-lm does with prompt-cache files: make one of a prompt, and go on from one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minivllm.backend import mx

# isort: split
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import load_prompt_cache, make_prompt_cache, save_prompt_cache
from mlx_lm.utils import load_model


def mlx_lm_makes(path: Path, model: Path, token_ids: Sequence[int]) -> Path:
    """A file of this prompt, as `mlx_lm.cache_prompt` writes it. `model` is the model's folder."""
    loaded = _loaded(model)
    cache = make_prompt_cache(loaded)
    for _ in generate_step(mx.array(list(token_ids)), loaded, max_tokens=0, prompt_cache=cache):
        pass
    save_prompt_cache(str(path), cache, {"model": str(model), "tokenizer_config": "{}"})
    return path


def mlx_lm_goes_on(path: Path, model: Path, token_ids: Sequence[int], max_tokens: int) -> list[int]:
    """The greedy tokens that mlx-lm generates when these tokens follow what the file holds."""
    cache = load_prompt_cache(str(path))
    steps = generate_step(mx.array(list(token_ids)), _loaded(model), max_tokens=max_tokens, prompt_cache=cache)
    return [int(token) for token, _ in steps]


def _loaded(model: Path) -> Any:
    return load_model(model)[0]
