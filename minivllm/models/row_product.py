"""One row times a matrix, on a CPU: a decode step of a single sequence is little else.

MLX computes every product with `sgemm`, which copies the matrix into blocks before it multiplies: worth it for many
rows, wasted for one. NumPy calls `sgemv` for that, on the memory of MLX's own arrays. Reading the weights of
SmolLM2-135M (538 MB) took 42 ms a token with the one and 23 ms with the other, on two cores.
"""

from __future__ import annotations

import numpy as np

from minivllm.backend import mx, nn


class RowLinear(nn.Module):
    """One linear layer, or several that read the same input, on float32 weights.

    A single row goes through one `sgemv`. Many rows get a product per layer, so that each output lies in one piece.
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.weight = mx.concatenate([layer.weight for layer in layers]) if len(layers) > 1 else layers[0].weight
        if "bias" in layers[0]:
            self.bias = mx.concatenate([layer.bias for layer in layers])
        mx.eval(self.parameters())
        sizes = [len(layer.weight) for layer in layers]
        self._bounds = [sum(sizes[:i]) for i in range(1, len(sizes))]
        self._matrix = np.array(self.weight, copy=False)  # the memory of `weight`, not a copy

    def __call__(self, x: mx.array) -> mx.array:
        (output,) = self.outputs(x)
        return output

    def outputs(self, x: mx.array) -> list[mx.array]:
        """What each layer makes of `x` [rows, in]."""
        if len(x) == 1:
            product = self._matrix @ np.array(x, copy=False)[0]
            outputs = self._split(mx.array(product[None]), axis=-1)
        else:
            outputs = [x @ weight.T for weight in self._split(self.weight)]
        if "bias" not in self:
            return outputs
        return [output + bias for output, bias in zip(outputs, self._split(self.bias), strict=True)]

    def _split(self, x: mx.array, axis: int = 0) -> list[mx.array]:
        return list(mx.split(x, self._bounds, axis=axis)) if self._bounds else [x]
