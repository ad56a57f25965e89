"""The oracle: stock mlx-lm's model and cache on the same weights, float32. No paging, no reuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minivllm.backend import mx  # first: it loads a fast BLAS before MLX

# isort: split
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import dequantize_model, load_model

from minivllm.models.registry import resolve

LOGIT_TOLERANCE = 1e-3
"""Largest difference of a float32 logit (they reach 20). Measured: 3e-4 with OpenBLAS, where the shape of a product
changes its last bits, over 30 layers and random tokens."""


class Oracle:
    def __init__(self, name: str) -> None:
        model, config = load_model(resolve(name))
        self._model = dequantize_model(model) if config.get("quantization") else model
        self._model.set_dtype(mx.float32)
        mx.eval(self._model.parameters())

    def logits(self, token_ids: Sequence[int]) -> np.ndarray:
        """float32 [tokens, vocabulary], computed in one pass over a fresh contiguous cache."""
        logits = self._model(mx.array([list(token_ids)]), cache=make_prompt_cache(self._model))[0]
        return np.array(logits.astype(mx.float32))

    def greedy(self, prompt: Sequence[int], max_tokens: int) -> list[int]:
        """Token by token, as mlx-lm generates."""
        cache = make_prompt_cache(self._model)
        token_ids, new = list(prompt), list(prompt)
        for _ in range(max_tokens):
            logits = self._model(mx.array([new]), cache=cache)[0, -1]
            new = [int(mx.argmax(logits).item())]
            token_ids += new
        return token_ids[len(prompt) :]

    def assert_greedy(self, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """Every token of `answer` is the oracle's own choice there; a near tie may go either way (AN-09)."""
        if not answer:
            return
        logits = self.logits([*prompt, *answer[:-1]])[len(prompt) - 1 :]
        for step, (row, token_id) in enumerate(zip(logits, answer, strict=True)):
            gap = row.max() - row[token_id]
            assert gap <= LOGIT_TOLERANCE, (
                f"token {step} of the answer to {list(prompt)} is {token_id}; "
                f"the oracle says {int(row.argmax())}, ahead by {gap:.4f}"
            )
