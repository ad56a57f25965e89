"""The range is always divided into 255 steps, and codes of fewer bits are clipped."""

KILLED_BY = "at most half a step away"
right = quantize


def quantize(values, bits, group_size):
    codes, scales, biases = right(values, 8, group_size)
    return codes.clip(0, 2**bits - 1), scales, biases
