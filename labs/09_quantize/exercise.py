"""Lab 09: half the memory. The question is in README.md; `labs check 09` says how far you are."""

from __future__ import annotations

import numpy as np


def slow_quantize_group(numbers: list[float], bits: int) -> tuple[list[int], float, float]:
    """What one group of finite numbers becomes, slowly: its codes, its scale and its bias."""
    largest_code = 2**bits - 1
    bias = min(numbers)
    scale = (max(numbers) - bias) / largest_code or 1.0
    return [min(largest_code, round((number - bias) / scale)) for number in numbers], scale, bias


def quantize(values: np.ndarray, bits: int, group_size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes uint8 [tokens, dim], scales and biases float32 [tokens, dim / group_size].

    `values` is float32 [tokens, dim]. A group with a NaN or an infinity comes back as NaN. Raises ValueError when
    `group_size` does not divide dim.
    """
    raise NotImplementedError("quantize is not written yet")


def dequantize(codes: np.ndarray, scales: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """float32 [tokens, dim]."""
    raise NotImplementedError("dequantize is not written yet")


def bytes_per_token(dim: int, bits: int, group_size: int, scale_bytes: int) -> float:
    """Bytes of `dim` numbers: packed codes, and a scale and a bias of `scale_bytes` each for every group."""
    raise NotImplementedError("bytes_per_token is not written yet")
