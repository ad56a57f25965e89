"""A group of equal numbers is divided by its range, which is 0."""

KILLED_BY = "at most half a step away"
right = quantize


def quantize(values, bits, group_size):
    codes, scales, biases = right(values, bits, group_size)
    groups = values.reshape(*scales.shape, group_size)
    is_flat = groups.max(axis=-1) == groups.min(axis=-1)
    return codes, np.where(is_flat, np.float32(np.nan), scales), biases
