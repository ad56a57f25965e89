"""Groups take every n-th number of a row instead of neighbours."""

KILLED_BY = "every group has its own scale"
right, right_back = quantize, dequantize


def quantize(values, bits, group_size):
    tokens, dim = values.shape
    turned = values.reshape(tokens, group_size, -1).transpose(0, 2, 1).reshape(tokens, dim)
    return right(np.ascontiguousarray(turned), bits, group_size)


def dequantize(codes, scales, biases):
    tokens, dim = codes.shape
    turned = right_back(codes, scales, biases).reshape(tokens, scales.shape[1], -1)
    return turned.transpose(0, 2, 1).reshape(tokens, dim)
