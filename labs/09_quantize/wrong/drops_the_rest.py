"""Numbers that do not fill a group are dropped."""

KILLED_BY = "groups must fit"
right = quantize


def quantize(values, bits, group_size):
    whole = values.shape[1] // group_size * group_size
    return right(values[:, :whole], bits, group_size)
