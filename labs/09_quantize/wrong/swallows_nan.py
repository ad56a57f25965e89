"""NaN and infinity are turned into numbers, and nobody notices."""

KILLED_BY = "what is no number stays visible"
right = quantize


def quantize(values, bits, group_size):
    return right(np.nan_to_num(values, nan=0.0, posinf=100.0, neginf=-100.0), bits, group_size)
