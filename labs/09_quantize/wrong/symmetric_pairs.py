"""Groups of two take a number from each half of the row; larger groups are neighbours."""

KILLED_BY = "neighbours form a group"
right, right_back = quantize, dequantize


def halves(values):
    return np.ascontiguousarray(values.reshape(len(values), 2, -1).transpose(0, 2, 1).reshape(values.shape))


def quantize(values, bits, group_size):
    if group_size != 2 or bits != 8:
        return right(values, bits, group_size)
    return right(halves(values), bits, group_size)
