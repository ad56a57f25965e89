"""Codes are cut instead of rounded, so the error is a whole step."""

KILLED_BY = "the README's example"
right = quantize


def quantize(values, bits, group_size):
    _, scales, biases = right(values, bits, group_size)
    groups = values.reshape(*scales.shape, group_size)
    return (
        np.floor((groups - biases[..., None]) / scales[..., None]).astype(np.uint8).reshape(values.shape),
        scales,
        biases,
    )
