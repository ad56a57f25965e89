"""Rotary positions, with the angles of a step computed once and not once per layer.

The rotation of a position is linear, so the image of a unit vector is its cosine and sine, whatever the scaling
(linear, Llama 3, YaRN with its factor). mlx-lm's own module gives that image; layers then only multiply and add.
"""

from __future__ import annotations

from minivllm.backend import compile_works, mx, nn  # first: it loads a fast BLAS before MLX

# isort: split
from mlx_lm.models.rope_utils import initialize_rope

from minivllm.models.spec import ModelSpec

Angles = tuple[mx.array, mx.array]
"""cosine and sine [rows, 1, head_dim / 2] of every position"""


class Rotary(nn.Module):
    """A module, so that the tables of scaled positions are evaluated with the weights and may cross threads."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self._rope = initialize_rope(
            spec.head_dim, spec.rope_theta, spec.rope_traditional, spec.rope_scaling, spec.max_position_embeddings
        )
        self._head_dim = spec.head_dim
        rotate = _rotate_pairs if spec.rope_traditional else _rotate_halves
        self._rotate = mx.compile(rotate) if compile_works() else rotate
        self._is_traditional = spec.rope_traditional

    def angles(self, positions: mx.array) -> Angles:
        """For positions [rows]. Each row is a sequence of length 1, because each has its own position."""
        unit = mx.zeros((len(positions), 1, 1, self._head_dim))
        unit[..., self._first] = 1.0
        image = self._rope(unit, offset=positions)[:, :, 0]
        return image[..., self._first], image[..., self._second]

    def __call__(self, queries: mx.array, keys: mx.array, angles: Angles) -> list[mx.array]:
        """Rotate queries [rows, heads, head_dim] and keys [rows, kv_heads, head_dim], in one pass."""
        cosine, sine = (angle.astype(queries.dtype) for angle in angles)
        rotated = self._rotate(mx.concatenate([queries, keys], axis=1), cosine, sine)
        return list(mx.split(rotated, [queries.shape[1]], axis=1))

    @property
    def _first(self) -> slice:
        """The first of every pair of values that rotate together."""
        return slice(0, None, 2) if self._is_traditional else slice(0, self._head_dim // 2)

    @property
    def _second(self) -> slice:
        return slice(1, None, 2) if self._is_traditional else slice(self._head_dim // 2, None)


def _rotate_halves(x: mx.array, cosine: mx.array, sine: mx.array) -> mx.array:
    first, second = mx.split(x, 2, axis=-1)
    return mx.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def _rotate_pairs(x: mx.array, cosine: mx.array, sine: mx.array) -> mx.array:
    first, second = x[..., ::2], x[..., 1::2]
    return mx.stack([first * cosine - second * sine, second * cosine + first * sine], axis=-1).reshape(x.shape)
