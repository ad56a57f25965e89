"""Lab 09, a solution: each group from its smallest to its largest number, in 2**bits - 1 steps."""

from __future__ import annotations

import numpy as np


def quantize(values: np.ndarray, bits: int, group_size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes uint8 [tokens, dim], scales and biases float32 [tokens, dim / group_size].

    `values` is float32 [tokens, dim]. A group with a NaN or an infinity comes back as NaN. Raises ValueError when
    `group_size` does not divide dim.
    """
    tokens, dim = values.shape
    if dim % group_size:
        raise ValueError(f"group_size={group_size} does not divide dim={dim}")
    groups = values.reshape(tokens, dim // group_size, group_size).astype(np.float64)
    is_finite = np.isfinite(groups).all(axis=-1)
    groups = np.where(is_finite[..., None], groups, 0.0)
    biases = groups.min(axis=-1).astype(np.float32)
    scales = ((groups.max(axis=-1) - biases) / (2**bits - 1)).astype(np.float32)
    scales = np.where(scales == 0, np.float32(1), scales)
    codes = np.rint((groups - biases[..., None]) / scales[..., None]).clip(0, 2**bits - 1).astype(np.uint8)
    return codes.reshape(tokens, dim), np.where(is_finite, scales, np.float32(np.nan)), biases


def dequantize(codes: np.ndarray, scales: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """float32 [tokens, dim]."""
    tokens, dim = codes.shape
    groups = codes.reshape(tokens, scales.shape[1], -1).astype(np.float32)
    return (groups * scales[..., None] + biases[..., None]).reshape(tokens, dim)


def bytes_per_token(dim: int, bits: int, group_size: int, scale_bytes: int) -> float:
    """Bytes of `dim` numbers: packed codes, and a scale and a bias of `scale_bytes` each for every group."""
    return dim * bits / 8 + 2 * scale_bytes * dim / group_size
