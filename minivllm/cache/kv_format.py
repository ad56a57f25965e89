"""How keys and values are stored: number format, bits, groups, and how many bytes that takes. No tensors.

    full precision    one number of `kv_dtype` per element
    8 or 4 bits       each group of `kv_group_size` elements of one head of one token shares a scale and a bias of
                      `kv_dtype`; an element is bias + scale x (a whole number of `kv_bits` bits)

Groups lie along the head, so none spans two tokens or two heads, and a token can be written without its neighbours.
The layout is that of `mx.quantize` (affine mode): https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantize.html

With `quantized_kv_start` the first pages of every sequence stay in full precision. The rule goes by page: a page is
quantized when its first token is at or behind the start, and its id says which it is. (mlx-lm's option of that name
converts the whole cache once it is longer than the start.)
"""

from __future__ import annotations

from dataclasses import dataclass

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
GROUP_SIZES = (32, 64, 128)  # what MLX has kernels for, as the bits
KV_BITS = (8, 4)


class KVFormatError(ValueError):
    """Keys and values cannot be stored like this; the message says what fits."""


@dataclass(frozen=True, slots=True)
class KVFormat:
    """`bits` None: every page in full precision. `head_pages`: pages at the head of a sequence that always are."""

    dtype: str
    bits: int | None = None
    group_size: int | None = None
    head_pages: int = 0

    def __post_init__(self) -> None:
        if self.dtype not in DTYPE_BYTES:
            raise KVFormatError(f"kv_dtype={self.dtype!r} is not one of {', '.join(DTYPE_BYTES)}")
        if self.bits is not None and self.bits not in KV_BITS:
            raise KVFormatError(f"kv_bits={self.bits!r} is not one of {', '.join(map(str, KV_BITS))}")
        if (self.bits is None) != (self.group_size is None):
            raise KVFormatError(f"kv_bits={self.bits} with kv_group_size={self.group_size}: give both or neither")

    def check_head(self, head_dim: int) -> None:
        """Raise `KVFormatError` when no whole number of groups makes a head; names the sizes that do."""
        if self.group_size is None or head_dim % self.group_size == 0:
            return
        fitting = [str(size) for size in GROUP_SIZES if head_dim % size == 0]
        offer = f"give kv_group_size {' or '.join(fitting)}" if fitting else "no group size fits: leave kv_bits out"
        raise KVFormatError(f"kv_group_size={self.group_size} does not divide the head size {head_dim}: {offer}")

    @property
    def full(self) -> KVFormat:
        """The format of the pages at the head."""
        return KVFormat(self.dtype)

    def bytes_per_token(self, num_layers: int, num_kv_heads: int, head_dim: int) -> int:
        """Keys and values of one token, scales and biases included; of a quantized page's, when pages differ.

        full precision   2 x layers x KV heads x head size x bytes of the dtype
        quantized        2 x layers x KV heads x (head size x bits / 8 + head size / group x 2 x bytes of the dtype)
        """
        if self.bits is None:
            per_head = head_dim * DTYPE_BYTES[self.dtype]
        else:
            assert self.group_size is not None
            per_head = head_dim * self.bits // 8 + head_dim // self.group_size * 2 * DTYPE_BYTES[self.dtype]
        return 2 * num_layers * num_kv_heads * per_head
