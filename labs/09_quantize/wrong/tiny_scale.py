"""A group of equal numbers gets a scale of a millionth and the largest code: nearly right."""

KILLED_BY = "equal numbers come back exactly"
right = quantize


def quantize(values, bits, group_size):
    codes, scales, biases = right(values, bits, group_size)
    groups = values.reshape(*scales.shape, group_size)
    is_flat = np.isfinite(groups).all(axis=-1) & (groups.max(axis=-1) == groups.min(axis=-1))
    codes = np.where(np.repeat(is_flat, group_size, axis=1), np.uint8(2**bits - 1), codes)
    return codes, np.where(is_flat, np.float32(1e-8), scales), biases
