"""One NaN makes the whole row NaN."""

KILLED_BY = "what is no number stays visible"
right = quantize


def quantize(values, bits, group_size):
    codes, scales, biases = right(values, bits, group_size)
    return codes, np.where(np.isnan(scales).any(axis=1, keepdims=True), np.float32(np.nan), scales), biases
