"""The exponential, fast on a CPU, and the two places where a transformer spends it: softmax and SiLU.

MLX's CPU `exp` costs about 12 ns an element on one thread. This polynomial costs 3, and 1.2 when `mx.compile` can fuse
it, at a relative error below 1e-6 of float32 (Cephes `expf`: range reduction by ln 2 in two parts, degree 6). GPUs keep
their own. Measure with `make bench`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minivllm.backend import compile_works, is_cpu, mx

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.12194440e-4
_COEFFICIENTS = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_ROUND = 12582912.0  # 1.5 * 2**23: adding it leaves the nearest whole number in the low mantissa bits
_ROUND_BITS = 0x4B400000  # the bits of that constant
_LOWEST = -87.0  # exp of less is denormal, and denormals are slow
_HIGHEST = 88.0


def _exp(x: mx.array) -> mx.array:
    """e**x of float32 x up to 88; below -87 it stays at e**-87, which is 1.6e-38. NaN stays NaN."""
    x = mx.maximum(x, _LOWEST)
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = mx.array(_COEFFICIENTS[0], dtype=mx.float32)
    for coefficient in _COEFFICIENTS[1:]:
        p = p * r + coefficient
    two_to_n = mx.view((mx.view(shifted, mx.int32) + (127 - _ROUND_BITS)) << 23, mx.float32)
    return (p * r * r + r + 1.0) * two_to_n


def _silu_times(gate: mx.array, up: mx.array) -> mx.array:
    return gate * up / (1.0 + _exp(mx.minimum(-gate, _HIGHEST)))


def _compiled(function: Callable[..., mx.array]) -> Callable[..., Any]:
    return mx.compile(function) if compile_works() else function


if is_cpu:
    exp: Callable[[mx.array], mx.array] = _compiled(_exp)
    silu_times: Callable[[mx.array, mx.array], mx.array] = _compiled(_silu_times)
else:
    exp = mx.exp
    silu_times = _compiled(lambda gate, up: gate * mx.sigmoid(gate) * up)
"""`silu_times(gate, up)` is SiLU(gate) * up, the gate of a Llama feed-forward layer."""
