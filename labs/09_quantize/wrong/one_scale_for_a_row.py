"""One scale and one bias for the whole row, repeated for every group."""

KILLED_BY = "every group has its own scale"
right = quantize


def quantize(values, bits, group_size):
    codes, scales, biases = right(values, bits, values.shape[1])
    groups = values.shape[1] // group_size
    return codes, np.repeat(scales, groups, axis=1), np.repeat(biases, groups, axis=1)
