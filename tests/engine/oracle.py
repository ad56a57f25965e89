"""The oracle: stock mlx-lm's model and cache on the same weights, float32. No paging, no reuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minivllm.backend import mx  # first: it loads a fast BLAS before MLX

# isort: split
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import dequantize_model, load_model

from minivllm.models.registry import resolve

LOGIT_TOLERANCE = 1e-3
"""Largest difference of a float32 logit (they reach 20). Measured: 3e-4 with OpenBLAS, where the shape of a product
changes its last bits, over 30 layers and random tokens."""


class RoundedCache(KVCache):  # type: ignore[misc]
    """mlx-lm's contiguous cache; what lies behind the first `start` tokens is rounded to `bits` before it is kept."""

    def __init__(self, bits: int, group_size: int, start: int) -> None:
        super().__init__()
        self._bits, self._group_size, self._start = bits, group_size, start

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        exact = max(0, self._start - self.offset)
        return super().update_and_fetch(self._rounded(keys, exact), self._rounded(values, exact))

    def _rounded(self, x: mx.array, num_exact: int) -> mx.array:
        """x [1, kv_heads, tokens, d]; as far as `num_exact` it stays as it is."""
        rounded = mx.dequantize(*mx.quantize(x, self._group_size, self._bits), self._group_size, self._bits)
        return mx.concatenate([x[:, :, :num_exact], rounded[:, :, num_exact:]], axis=2)


class Oracle:
    """With `bits`, keys and values are rounded as quantized pages round them."""

    def __init__(self, name: str, bits: int | None = None, group_size: int = 32, start: int = 0) -> None:
        model, config = load_model(resolve(name))
        self._model = dequantize_model(model) if config.get("quantization") else model
        self._model.set_dtype(mx.float32)
        mx.eval(self._model.parameters())
        self._bits, self._group_size, self._start = bits, group_size, start

    def _new_cache(self) -> list[KVCache]:
        if self._bits is None:
            return list(make_prompt_cache(self._model))
        return [RoundedCache(self._bits, self._group_size, self._start) for _ in self._model.layers]

    def logits(self, token_ids: Sequence[int]) -> np.ndarray:
        """float32 [tokens, vocabulary], computed in one pass over a fresh contiguous cache."""
        logits = self._model(mx.array([list(token_ids)]), cache=self._new_cache())[0]
        return np.array(logits.astype(mx.float32))

    def greedy(self, prompt: Sequence[int], max_tokens: int) -> list[int]:
        """Token by token, as mlx-lm generates."""
        cache = self._new_cache()
        token_ids, new = list(prompt), list(prompt)
        for _ in range(max_tokens):
            logits = self._model(mx.array([new]), cache=cache)[0, -1]
            new = [int(mx.argmax(logits).item())]
            token_ids += new
        return token_ids[len(prompt) :]

    def assert_greedy(self, prompt: Sequence[int], answer: Sequence[int], tolerance: float = LOGIT_TOLERANCE) -> None:
        """Every token of `answer` is the oracle's own choice there; a near tie may go either way (AN-09)."""
        if not answer:
            return
        logits = self.logits([*prompt, *answer[:-1]])[len(prompt) - 1 :]
        for step, (row, token_id) in enumerate(zip(logits, answer, strict=True)):
            gap = row.max() - row[token_id]
            assert gap <= tolerance, (
                f"token {step} of the answer to {list(prompt)} is {token_id}; "
                f"the oracle says {int(row.argmax())}, ahead by {gap:.4f}"
            )
